#include "launch/env_file.h"
#include "tests/unit/launch/made.h"

using namespace dshang::launch;

namespace {

// The hostfile that every test names, and the user's own environment file in the folder.
struct Job {
  Folder folder;
  Job() {
    folder.write("hosts", "one slots=2\ntwo slots=2\n");
    std::filesystem::create_directory(folder.path / "home");
  }
  Plan plan(const std::string& runner, Variables environment = {}) const {
    return planned(place_in(folder, std::move(environment)),
                   {"deepspeed", "--hostfile", "hosts", "--launcher", runner, "x.py", "--lr", "1"});
  }
};

}  // namespace

TEST_CASE("pdsh: an environment file carries the preload and DSHANG_*") {
  Job job;
  Plan plan = job.plan("pdsh", {{"DSHANG_STALL_AFTER", "9"}, {"DSHANG_DIR", "/d"}, {"OTHER", "1"}});
  CHECK(plan.env_file == "LD_PRELOAD=/opt/dshang/libdshang.so${LD_PRELOAD:+:$LD_PRELOAD}\n"
                         "DSHANG_DIR=/d\nDSHANG_STALL_AFTER=9\n");
  CHECK(plan.command.size() == 8);
  REQUIRE(plan.nodes);
  CHECK(plan.nodes->hostfile == "hosts");
}

TEST_CASE("pdsh: nothing of the user's files is lost, in the order in which DeepSpeed reads them") {
  Job job;
  job.folder.write("home/.deepspeed_env", "NCCL_DEBUG=INFO\nA=1\n");
  job.folder.write(".deepspeed_env", "A=2\nLD_PRELOAD=/site/x.so\nDSHANG_STALL_AFTER=5\nB=a=b \"c\"");
  Plan plan = job.plan("pdsh", {{"DSHANG_STALL_AFTER", "9"}, {"DSHANG_DIR", "/d"}});
  CHECK(plan.env_file == "NCCL_DEBUG=INFO\nA=1\nA=2\nB=a=b \"c\"\nLD_PRELOAD=/opt/dshang/libdshang.so:/site/x.so\n"
                         "DSHANG_DIR=/d\nDSHANG_STALL_AFTER=9\n");
  // A variable that only the file sets stays as it is there.
  CHECK(job.plan("pdsh", {{"DSHANG_DIR", "/d"}}).env_file->find("DSHANG_STALL_AFTER=5\n") != std::string::npos);
}

TEST_CASE("pdsh: DS_ENV_FILE names the user's file") {
  Job job;
  job.folder.write("home/mine", "A=1\n");
  job.folder.write(".deepspeed_env", "B=2\n");
  std::string text = *job.plan("pdsh", {{"DS_ENV_FILE", "mine"}}).env_file;
  CHECK(text.find("A=1\n") == 0);
  CHECK(text.find("B=2") == std::string::npos);
  std::string absolute = job.folder.write("elsewhere", "C=3\n");
  CHECK(job.plan("pdsh", {{"DS_ENV_FILE", absolute}}).env_file->find("C=3\n") == 0);
}

TEST_CASE("a line at which DeepSpeed's runner would end is said before") {
  Job job;
  std::string path = job.folder.write(".deepspeed_env", "A=1\n\nB=2\n");
  Words command = {"deepspeed", "--hostfile", "hosts", "x.py"};
  CHECK(refused(place_in(job.folder), command).find(path + ":2 is no NAME=VALUE") == 0);
  job.folder.write(".deepspeed_env", "A=1\n");
  CHECK(refused(place_in(job.folder, {{"DSHANG_ON_HANG", "exec:a\nb"}}), command).find("has several lines") !=
        std::string::npos);
}

TEST_CASE("pdsh: what the node's shell and pdsh would replace is kept") {
  CHECK(for_pdsh("5%") == "5%%");
  CHECK(for_pdsh("exec:mail -s \"$X\" `me` \\n") == "exec:mail -s \\\"\\$X\\\" \\`me\\` \\\\n");
}

TEST_CASE("openmpi: names go into --launcher_args, files only lose what is carried") {
  Job job;
  Plan plan = job.plan("OpenMPI", {{"DSHANG_DIR", "/d"}, {"DSHANG_ON_HANG", "exec:a b"}});
  CHECK_FALSE(plan.env_file);
  CHECK(plan.command[1] == "--launcher_args=-x LD_PRELOAD -x DSHANG_DIR -x DSHANG_ON_HANG");
  job.folder.write(".deepspeed_env", "LD_PRELOAD=/site/x.so\nA=1\n");
  plan = job.plan("openmpi", {{"DSHANG_DIR", "/d"}, {"LD_PRELOAD", "/mine.so"}});
  CHECK(plan.env_file == "A=1\n");
  CHECK(plan.environment["LD_PRELOAD"] == "/opt/dshang/libdshang.so:/site/x.so:/mine.so");
}

TEST_CASE("the user's own --launcher_args stay, and the program's words are left alone") {
  Job job;
  Plan plan = planned(place_in(job.folder, {{"DSHANG_DIR", "/d d"}}),
                      {"deepspeed", "-H", "hosts", "--launcher=mpich", "--launcher_args", "a b", "x.py",
                       "--launcher_args", "c"});
  CHECK(plan.command[5] == "a b -genv LD_PRELOAD '/opt/dshang/libdshang.so' -genv DSHANG_DIR '/d d'");
  CHECK(plan.command[8] == "c");
}

TEST_CASE("slurm hands the environment on, and several nodes agree on one folder") {
  Job job;
  Plan plan = job.plan("slurm");
  CHECK(plan.environment == Variables{{"LD_PRELOAD", kLibrary}, {"DSHANG_DIR", "/jobs/dshang-new"}});
  CHECK_FALSE(plan.env_file);
}

TEST_CASE("without a hostfile, or without ssh, the ranks are the launcher's children") {
  Job job;
  for (const Words& command : std::vector<Words>{{"deepspeed", "--hostfile", "missing", "x.py"},
                                                 {"deepspeed", "--no_ssh", "-H", "hosts", "x.py"},
                                                 {"deepspeed", "x.py", "--hostfile", "hosts"}}) {
    Plan plan = planned(place_in(job.folder), command);
    CHECK_FALSE(plan.env_file);
    CHECK_FALSE(plan.nodes);
    CHECK(plan.environment.size() == 1);
  }
}

TEST_CASE("the environment file is the user's own, and old ones go") {
  Folder folder;
  std::string place = (folder.path / "own").string();
  std::string path = write_env_file(place, "A=1\n");
  CHECK(write_env_file(place, "A=1\n") == path);
  std::string other = write_env_file(place, "A=2\n");
  CHECK(other != path);
  CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::others_read) ==
        std::filesystem::perms::none);
  std::filesystem::last_write_time(path,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 8));
  write_env_file(place, "A=2\n");
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(std::filesystem::exists(other));
  std::filesystem::permissions(place, std::filesystem::perms::all);
  CHECK_THROWS(write_env_file(place, "A=1\n"));
}

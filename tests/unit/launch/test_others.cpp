#include "tests/unit/launch/made.h"

using namespace dshang::launch;

namespace {

const Variables kSet = {{"DSHANG_DIR", "/d"}};

}  // namespace

TEST_CASE("srun: an --export that leaves things out is extended by names, an open one is not") {
  Folder folder;
  auto exported = [&](const std::string& list) {
    return planned(place_in(folder, kSet), {"srun", "-N", "2", "--export=" + list, "python", "x.py"}).command[3];
  };
  CHECK(exported("ALL") == "--export=ALL");
  CHECK(exported("NONE") == "--export=LD_PRELOAD,DSHANG_DIR");
  CHECK(exported("NIL") == "--export=LD_PRELOAD,DSHANG_DIR");
  CHECK(exported("PATH,DSHANG_DIR=/e") == "--export=PATH,DSHANG_DIR=/e,LD_PRELOAD");
  CHECK(exported("ALL,LD_PRELOAD=/a.so") == "--export=ALL,LD_PRELOAD=/opt/dshang/libdshang.so:/a.so,DSHANG_DIR");
  Plan plan = planned(place_in(folder, kSet), {"srun", "--export", "NONE", "python", "x.py", "--export=onnx"});
  CHECK(plan.command == Words{"srun", "--export", "LD_PRELOAD,DSHANG_DIR", "python", "x.py", "--export=onnx"});
}

TEST_CASE("srun: SLURM_EXPORT_ENV counts where the command line says nothing") {
  Folder folder;
  Variables set = kSet;
  set["SLURM_EXPORT_ENV"] = "NONE";
  CHECK(planned(place_in(folder, set), {"srun", "x"}).environment["SLURM_EXPORT_ENV"] == "LD_PRELOAD,DSHANG_DIR");
  CHECK(planned(place_in(folder, set), {"srun", "--export=ALL", "x"}).environment.count("SLURM_EXPORT_ENV") == 0);
  CHECK(planned(place_in(folder), {"srun", "x"}).environment["DSHANG_DIR"] == "/jobs/dshang-new");
}

TEST_CASE("srun with a container of Pyxis: the library is mounted, beside the user's mounts") {
  Folder folder;
  CHECK(planned(place_in(folder), {"srun", "--container-image=a", "x"}).command[1] ==
        "--container-mounts=/opt/dshang:/opt/dshang:ro");
  CHECK(planned(place_in(folder), {"srun", "--container-mounts", "/a:/b", "--container-image", "a", "x"}).command[2] ==
        "/a:/b,/opt/dshang:/opt/dshang:ro");
}

TEST_CASE("Open MPI: -x for each application, the user's preload stays") {
  Folder folder;
  CHECK(planned(place_in(folder, kSet), {"mpirun", "-n", "1", "a", ":", "-n", "1", "b"}).command ==
        Words{"mpirun", "-x", "LD_PRELOAD", "-x", "DSHANG_DIR", "-n", "1", "a", ":", "-x", "LD_PRELOAD", "-x",
              "DSHANG_DIR", "-n", "1", "b"});
  CHECK(planned(place_in(folder, kSet), {"mpirun", "-x", "LD_PRELOAD=/a.so", "a"}).command.at(6) ==
        "LD_PRELOAD=/opt/dshang/libdshang.so:/a.so");
}

TEST_CASE("Open MPI: -x is refused beside mca_base_env_list, which is extended") {
  Folder folder;
  CHECK(planned(place_in(folder, kSet), {"mpirun", "--mca", "mca_base_env_list", "A;B=1", "a"}).command ==
        Words{"mpirun", "--mca", "mca_base_env_list", "A;B=1;LD_PRELOAD;DSHANG_DIR", "a"});
  Variables set = kSet;
  set["OMPI_MCA_mca_base_env_list"] = "A";
  Plan plan = planned(place_in(folder, set), {"mpirun", "a"});
  CHECK(plan.command.size() == 2);
  CHECK(plan.environment["OMPI_MCA_mca_base_env_list"] == "A;LD_PRELOAD;DSHANG_DIR");
}

TEST_CASE("Hydra: -genv with values; what is neither is said") {
  Folder folder;
  Place place = place_in(folder, kSet);
  place.version_of = [](const std::string&) { return std::string("HYDRA build details:"); };
  CHECK(planned(place, {"mpiexec", "-genv", "LD_PRELOAD", "/a.so", "x"}).command ==
        Words{"mpiexec", "-genv", "LD_PRELOAD", kLibrary, "-genv", "DSHANG_DIR", "/d", "-genv", "LD_PRELOAD",
              "/opt/dshang/libdshang.so:/a.so", "x"});
  place.version_of = [](const std::string&) { return std::string(); };
  Plan plan = planned(place, {"mpiexec", "x"});
  CHECK(plan.command.size() == 2);
  CHECK(plan.remarks.at(0).find("neither Open MPI nor MPICH") != std::string::npos);
}

TEST_CASE("mpirun: a hostfile of its own counts, not one of the program") {
  Folder folder;
  CHECK(planned(place_in(folder), {"mpirun", "--hostfile", "h", "python", "x.py", "--hostfile", "i"}).nodes->hostfile ==
        "h");
  CHECK_FALSE(planned(place_in(folder), {"mpirun", "python", "x.py", "--hostfile", "i"}).nodes);
}

TEST_CASE("Apptainer: variables inside, and the library's folder bound") {
  Folder folder;
  Plan plan = planned(place_in(folder, kSet), {"apptainer", "exec", "--nv", "a.sif", "torchrun", "x.py"});
  CHECK(plan.environment["APPTAINERENV_LD_PRELOAD"] == kLibrary);
  CHECK(plan.environment["APPTAINERENV_DSHANG_DIR"] == "/d");
  CHECK(plan.environment["APPTAINER_BIND"] == "/opt/dshang:/opt/dshang:ro");
  CHECK(plan.environment.count("SINGULARITY_BIND") == 0);
}

TEST_CASE("Apptainer: what the user has set stays, in whichever of the two spellings") {
  Folder folder;
  Variables set = {{"SINGULARITY_BIND", "/data"}, {"SINGULARITYENV_LD_PRELOAD", "/a.so"}, {"LD_PRELOAD", "/host.so"}};
  Plan plan = planned(place_in(folder, set), {"apptainer", "exec", "a.sif", "x"});
  CHECK(plan.environment["APPTAINER_BIND"] == "/data,/opt/dshang:/opt/dshang:ro");
  CHECK(plan.environment["APPTAINERENV_LD_PRELOAD"] == "/opt/dshang/libdshang.so:/a.so");
  plan = planned(place_in(folder, {{"APPTAINER_BIND", "/data"}}), {"singularity", "exec", "a.sif", "x"});
  CHECK(plan.environment["APPTAINER_BIND"] == "/data,/opt/dshang:/opt/dshang:ro");
  CHECK(plan.environment["SINGULARITY_BIND"] == "/data,/opt/dshang:/opt/dshang:ro");
}

TEST_CASE("Apptainer: the host's own preload gets in as it would have without dshang") {
  Folder folder;
  Variables set = {{"LD_PRELOAD", "/host.so"}};
  CHECK(planned(place_in(folder, set), {"apptainer", "exec", "a.sif", "x"}).environment["APPTAINERENV_LD_PRELOAD"] ==
        "/opt/dshang/libdshang.so:/host.so");
  CHECK(planned(place_in(folder, set), {"apptainer", "exec", "--cleanenv", "a.sif", "x"})
            .environment["APPTAINERENV_LD_PRELOAD"] == kLibrary);
}

TEST_CASE("several launchers in a command each get their own") {
  Folder folder;
  Plan plan = planned(place_in(folder, kSet), {"srun", "--export=NONE", "enroot", "start", "--env", "LD_PRELOAD=/a.so",
                                               "image", "torchrun", "x.py"});
  CHECK(plan.command ==
        Words{"srun", "--export=LD_PRELOAD,DSHANG_DIR", "enroot", "start", "--env",
              "LD_PRELOAD=/opt/dshang/libdshang.so", "--env", "DSHANG_DIR", "--mount", "/opt/dshang:/opt/dshang",
              "--env", "LD_PRELOAD=/opt/dshang/libdshang.so:/a.so", "image", "torchrun", "x.py"});
}

TEST_CASE("the hosts that take part are asked") {
  Folder folder;
  std::string path = folder.write("h", "# all\none slots=2\ntwo:4\n\nthree\none slots=1\n");
  using Hosts = std::vector<std::string>;
  CHECK(hosts_of({path, "", "", -1, ""}) == Hosts{"one", "two", "three"});
  CHECK(hosts_of({path, "", "", 2, ""}) == Hosts{"one", "two"});
  CHECK(hosts_of({path, "two@three:0,1", "", -1, ""}) == Hosts{"two", "three"});
  CHECK(hosts_of({path, "", "two@three:0", -1, ""}) == Hosts{"one", "three"});
  CHECK_THROWS(hosts_of({path, "four", "", -1, ""}));
  CHECK_THROWS(hosts_of({folder.write("bad", "-oProxyCommand=x slots=1\n"), "", "", -1, ""}));
  CHECK_THROWS(hosts_of({"/missing", "", "", -1, ""}));
}

TEST_CASE("ssh is called as pdsh calls it") {
  CHECK(ssh_words("h", "c", "", "", "", "me") ==
        Words{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "h", "c"});
  CHECK(ssh_words("h", "c", "22", "-l%u -p 7 %h", "-A", "me") ==
        Words{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-A", "-p", "22", "-lme", "-p", "7", "h", "c"});
}

TEST_CASE("the library for dlsym, where it is asked for, stands behind libdshang.so on every way") {
  Folder folder;
  Place place = place_in(folder, {{"LD_PRELOAD", "/a.so"}});
  place.dlsym = "/opt/dshang/libdshang_dlsym.so";
  const std::string both = "/opt/dshang/libdshang.so:/opt/dshang/libdshang_dlsym.so";
  CHECK(planned(place, {"torchrun", "x.py"}).environment["LD_PRELOAD"] == both + ":/a.so");
  CHECK(planned(place, {"srun", "--export=LD_PRELOAD=/b.so", "x"}).command[1] ==
        "--export=LD_PRELOAD=" + both + ":/b.so,DSHANG_DIR");
  CHECK(planned(place, {"mpirun", "-x", "LD_PRELOAD=/b.so", "x"}).command.at(6) == "LD_PRELOAD=" + both + ":/b.so");
  CHECK(planned(place, {"apptainer", "exec", "image", "x"}).environment["APPTAINERENV_LD_PRELOAD"] == both + ":/a.so");
  CHECK(planned(place, {"enroot", "start", "image", "x"}).command.at(3) == "LD_PRELOAD=" + both);
  std::string hosts = folder.write("hosts", "node-a slots=1\n");
  Plan plan = planned(place, {"deepspeed", "--hostfile", hosts, "x.py"});
  CHECK(plan.env_file.value().find("LD_PRELOAD=" + both + "${LD_PRELOAD:+:$LD_PRELOAD}\n") != std::string::npos);
}

// Interfaces, InfiniBand, ports, file systems.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "doctor/command.h"
#include "doctor/measure.h"

namespace dshang::doctor {
namespace {

namespace fs = std::filesystem;

void measure_interfaces(Machine* machine) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator("/sys/class/net", error)) {
    if (entry.is_directory(error)) names.push_back(entry.path().filename().string());
  }
  if (!names.empty()) machine->interfaces = names;
}

void measure_infiniband(Machine* machine) {
  machine->infiniband = false;
  std::error_code error;
  for (const auto& device : fs::directory_iterator("/sys/class/infiniband", error)) {
    std::error_code of_ports;
    for (const auto& port : fs::directory_iterator(device.path() / "ports", of_ports)) {
      if (first_line(port.path().string() + "/state").find("ACTIVE") != std::string::npos)
        machine->infiniband = true;
    }
  }
}

// As the store listens: the option SO_REUSEADDR, so that TIME_WAIT is no hindrance.
bool cannot_listen(int family, int port) {
  int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  int result = 0;
  if (family == AF_INET6) {
    struct sockaddr_in6 address {};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<std::uint16_t>(port));
    result = bind(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof address);
  } else {
    struct sockaddr_in address {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    result = bind(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof address);
  }
  if (result == 0) result = listen(fd, 1);
  bool busy = result != 0 && errno == EADDRINUSE;
  close(fd);
  return busy;
}

// The inode of the socket that listens there, of /proc/net/tcp and tcp6; "" none.
std::string listener(int port) {
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >>
          inode;
      std::size_t colon = local.rfind(':');
      if (state == "0A" && colon != std::string::npos &&
          std::stoi(local.substr(colon + 1), nullptr, 16) == port)
        return inode;
    }
  }
  return "";
}

// "process 123 (python)"; "" where its files cannot be read.
std::string owner_of(int port) {
  std::string inode = listener(port);
  if (inode.empty()) return "";
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    std::error_code of_fds;
    fs::directory_iterator all(process.path() / "fd", of_fds), end;
    for (; !of_fds && all != end; all.increment(of_fds)) {
      std::error_code of_link;
      if (fs::read_symlink(all->path(), of_link) == "socket:[" + inode + "]")
        return "process " + process.path().filename().string() + " (" +
               first_line(process.path().string() + "/comm") + ")";
    }
  }
  return "";
}

int port_of(const Facts& facts) {
  auto option = facts.launch.options.find("master_port");
  const std::string* text = option != facts.launch.options.end() ? &option->second : facts.env("MASTER_PORT");
  if (!text) return 29500;
  bool number =
      !text->empty() && text->size() < 6 && text->find_first_not_of("0123456789") == std::string::npos;
  int port = number ? std::stoi(*text) : 0;
  return port < 65536 ? port : 0;
}

bool is_loopback(const std::string& name) {
  struct addrinfo hints {
  }, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_flags = AI_NUMERICHOST;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) {
    // Names are looked for in /etc/hosts only: a name server may be slow.
    std::ifstream hosts("/etc/hosts");
    for (std::string line; std::getline(hosts, line);) {
      std::istringstream words(line.substr(0, line.find('#')));
      std::string address, host;
      words >> address;
      while (words >> host) {
        if (host == name) return address.starts_with("127.") || address == "::1";
      }
    }
    return false;
  }
  auto* address = reinterpret_cast<struct sockaddr_in*>(found->ai_addr);
  bool loopback = (ntohl(address->sin_addr.s_addr) >> 24) == 127;
  freeaddrinfo(found);
  return loopback;
}

// The file system type of a path, by the longest mount point above it.
std::string filesystem_of(const std::string& path) {
  std::ifstream mounts("/proc/self/mounts");
  std::string best, type;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, point, kind;
    words >> device >> point >> kind;
    bool above = path == point || point == "/" || path.starts_with(point + "/");
    if (above && point.size() >= best.size()) best = point, type = kind;
  }
  return type;
}

std::optional<bool> rotational_at(const fs::path& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return std::nullopt;
  std::string device =
      "/sys/dev/block/" + std::to_string(major(about.st_dev)) + ":" + std::to_string(minor(about.st_dev));
  for (const char* place :
       {"/queue/rotational", "/../queue/rotational"}) {  // a partition has its disk above it
    std::string value = first_line(device + place);
    if (!value.empty()) return value == "1";
  }
  return std::nullopt;
}

void measure_place(const std::string& name, Facts* facts) {
  std::error_code error;
  fs::path there = fs::absolute(name, error);
  while (!there.empty() && !fs::exists(there, error) && there != there.root_path())
    there = there.parent_path();
  PlaceOnDisk place;
  if (!fs::exists(name, error)) place.within = there.string();
  place.filesystem = filesystem_of(there.string());
  place.writable = access(there.c_str(), W_OK) == 0;
  place.rotational = rotational_at(there);
  struct statvfs disk {};
  if (statvfs(there.c_str(), &disk) == 0)
    place.free_bytes = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  facts->machine.places[name] = place;
}

}  // namespace

void measure_network(Facts* facts) {
  measure_interfaces(&facts->machine);
  measure_infiniband(&facts->machine);
  int port = port_of(*facts);
  bool busy = port > 0 && (cannot_listen(AF_INET, port) || cannot_listen(AF_INET6, port));
  if (busy) facts->machine.busy_ports[port] = owner_of(port);
  if (const std::string* address = facts->env("MASTER_ADDR"))
    facts->machine.master_is_loopback = is_loopback(*address);
}

void measure_places(Facts* facts) {
  if (!facts->config || !facts->config->readable()) return;
  for (const char* block : {"offload_param", "offload_optimizer"}) {
    std::string path = facts->config->text("zero_optimization." + std::string(block) + ".nvme_path");
    if (!path.empty() && path != "auto") measure_place(path, facts);
  }
}

}  // namespace dshang::doctor

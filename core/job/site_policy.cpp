#include "core/job/site_policy.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace dshang::job {
namespace {

using Parts = std::vector<std::string_view>;

Parts split(std::string_view path) {
  Parts parts;
  while (!path.empty()) {
    std::size_t slash = path.find('/');
    std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.push_back(part);
    path = slash == path.npos ? std::string_view() : path.substr(slash + 1);
  }
  return parts;
}

template <std::size_t N>
bool one_of(std::string_view text, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool starts_with_any_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(),
                    [](char l, char t) { return l == std::tolower(static_cast<unsigned char>(t)); });
}

bool is_trainer(std::string_view file) { return file.starts_with("trainer") && file.ends_with(".py"); }

// The package at parts[i], installed.
bool is_framework_package(const Parts& parts, std::size_t i) {
  constexpr std::array<std::string_view, 8> kPackages = {
      "torch",     "functorch",         "deepspeed",        "accelerate",
      "lightning", "pytorch_lightning", "lightning_fabric", "lightning_utilities"};
  if (one_of(parts[i], kPackages)) return true;
  return parts[i] == "transformers" && i + 2 == parts.size() && is_trainer(parts[i + 1]);
}

// A source checkout: `package/child` where no user's program has it.
struct Pair {
  std::string_view package;
  std::string_view child;
};
constexpr Pair kPairs[] = {
    {"torch", "distributed"},
    {"torch", "nn"},
    {"torch", "autograd"},
    {"torch", "optim"},
    {"torch", "cuda"},
    {"torch", "fx"},
    {"torch", "_dynamo"},
    {"torch", "_inductor"},
    {"torch", "_functorch"},
    {"torch", "_ops.py"},
    {"torch", "_compile.py"},
    {"torch", "_tensor.py"},
    {"torch", "_higher_order_ops"},
    {"deepspeed", "runtime"},
    {"deepspeed", "comm"},
    {"deepspeed", "moe"},
    {"deepspeed", "sequence"},
    {"deepspeed", "inference"},
    {"deepspeed", "compile"},
    {"deepspeed", "checkpoint"},
    {"deepspeed", "module_inject"},
    {"deepspeed", "launcher"},
    {"deepspeed", "accelerator"},
    {"accelerate", "accelerator.py"},
    {"accelerate", "commands"},
    {"lightning", "pytorch"},
    {"lightning", "fabric"},
    {"pytorch_lightning", "trainer"},
    {"pytorch_lightning", "loops"},
    {"pytorch_lightning", "strategies"},
    {"pytorch_lightning", "core"},
    {"pytorch_lightning", "plugins"},
    {"pytorch_lightning", "overrides"},
};

bool is_framework_checkout(const Parts& parts) {
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    for (const Pair& pair : kPairs) {
      if (parts[i] == pair.package && parts[i + 1] == pair.child) return true;
    }
    // deepspeed/utils is a name that a user may have; the wrapper in it that is on every stack is not.
    if (parts[i] == "deepspeed" && parts[i + 1] == "utils" && parts.back() == "nvtx.py") return true;
    if (i == 0) continue;
    // DeepSpeed/deepspeed/..., pytorch/torch/..., accelerate/src/accelerate/...,
    // transformers/src/transformers/...
    std::string_view parent = parts[i - 1];
    if (parts[i] == "deepspeed" && starts_with_any_case(parent, "deepspeed")) return true;
    if (parts[i] == "torch" && starts_with_any_case(parent, "pytorch")) return true;
    if (parent == "src" && is_framework_package(parts, i)) return true;
  }
  return false;
}

bool is_python_library(std::string_view part) {
  if (part.starts_with("python") && part.ends_with(".zip")) return true;
  return part.starts_with("python") && part.size() > 6 && std::isdigit(static_cast<unsigned char>(part[6]));
}

// Index behind the last site-packages or dist-packages, 0 = none.
std::size_t packages_end(const Parts& parts) {
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (parts[i] == "site-packages" || parts[i] == "dist-packages") return i + 1;
  }
  return 0;
}

bool in_standard_library(const Parts& parts) {
  for (std::size_t i = 0; i + 2 < parts.size(); ++i) {
    bool lib = parts[i] == "lib" || parts[i] == "lib64";
    if (lib && is_python_library(parts[i + 1])) return true;
  }
  return false;
}

// Standard library modules that stand between a caller and a collective, where the path says no more than
// their name.
bool is_bare_glue(const Parts& parts) {
  constexpr std::array<std::string_view, 5> kModules = {"contextlib.py", "functools.py", "threading.py",
                                                        "queue.py", "runpy.py"};
  constexpr std::array<std::string_view, 3> kFolders = {"ctypes", "concurrent", "multiprocessing"};
  if (parts.size() == 1) return one_of(parts[0], kModules);
  return parts.size() <= 3 && one_of(parts[0], kFolders);
}

bool is_compiler_cache(const Parts& parts, std::string_view file) {
  bool temporary = file.starts_with("/tmp/") || file.starts_with("/var/tmp/");
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return part.starts_with("torchinductor_") || part == ".triton" || part == "torch_extensions" ||
           (temporary && part.find("triton") != part.npos);
  });
}

// A console script: no suffix, in a bin directory.
bool is_launcher(const Parts& parts) {
  constexpr std::array<std::string_view, 7> kScripts = {
      "torchrun", "deepspeed", "ds", "accelerate", "accelerate-launch", "lightning", "dshang"};
  return parts.size() >= 2 && parts[parts.size() - 2] == "bin" && one_of(parts.back(), kScripts);
}

bool is_own(const Parts& parts, std::size_t packages) {
  if (packages && packages < parts.size() && parts[packages].starts_with("dshang")) return true;
  return std::any_of(parts.begin(), parts.end(),
                     [](std::string_view part) {
    return part == "simgpu_python" || part == "simgpu_numerics" || part == "dshang_probe";
  });
}

}  // namespace

FrameOwner frame_owner(std::string_view file) {
  if (file.empty() || file.front() == '<') return FrameOwner::kGlue;
  Parts parts = split(file);
  if (parts.empty()) return FrameOwner::kGlue;
  std::size_t packages = packages_end(parts);
  if (is_own(parts, packages) || is_compiler_cache(parts, file) || is_launcher(parts))
    return FrameOwner::kGlue;
  if (packages && parts.back() == "typing_extensions.py")
    return FrameOwner::kGlue;  // its decorators wrap torch
  if (packages) {
    if (packages < parts.size() && is_framework_package(parts, packages)) return FrameOwner::kFramework;
    return FrameOwner::kLibrary;
  }
  if (in_standard_library(parts) || is_bare_glue(parts)) return FrameOwner::kGlue;
  if (is_framework_checkout(parts)) return FrameOwner::kFramework;
  return FrameOwner::kUser;
}

}  // namespace dshang::job

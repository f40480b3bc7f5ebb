// Whose code a Python frame is: decides which frame of a stack is the *site* of a report.
#pragma once

#include <string_view>

namespace dshang::job {

enum class FrameOwner {
  kUser,
  kLibrary,  // in site-packages or dist-packages, but no framework: a possible site, not a possible user site
  kFramework,  // torch, DeepSpeed, accelerate, Lightning, the Hugging Face trainer
  kGlue,  // the standard library, launchers, compiler caches, <frozen ...>, dshang's own and the simulator's
};

// By the file name alone, as the code object has it.  Packages are known by their place under site-packages
// or dist-packages; in source checkouts by pairs of components that a user's directory is unlikely to have
// (deepspeed/runtime), so that ~/deepspeed/train.py stays the user's.
FrameOwner frame_owner(std::string_view file);

}  // namespace dshang::job

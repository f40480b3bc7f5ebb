// The C types of the wrapped functions, declared by hand: nccl.h and cuda_runtime_api.h differ between versions and are
// not needed to build.
//
// Every role has a type of its own, so that a wrapper finds the count, the root or the stream of any function by type.
// An enumeration is passed as its underlying integer (System V and AArch64 ABI); signatures.cpp compares every row with
// the real headers where they are there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dshang::interpose::abi {

// NCCL
enum class Result : int {  // ncclResult_t
  kSuccess = 0,
  kInvalidUsage = 5,
  kRemoteError = 6,  // since NCCL 2.13
  kInProgress = 7,
};
enum class Count : std::size_t {};
enum class DataType : int {};  // ncclDataType_t
enum class RedOp : int {};     // ncclRedOp_t
enum class Root : int {};
enum class Peer : int {};
struct CommOpaque;
using Comm = CommOpaque*;
using CommOut = Comm*;
struct WindowOpaque;
using Window = WindowOpaque*;
struct ConfigOpaque;  // grows with every version: only its address is passed on
using Config = ConfigOpaque*;
struct UniqueId {  // passed by value
  char bytes[128];
};
inline constexpr int kNoColor = -1;  // NCCL_SPLIT_NOCOLOR

// CUDA
enum class CudaResult : int {  // cudaError_t
  kSuccess = 0,
  kNotSupported = 801,
};
struct StreamOpaque;
using Stream = StreamOpaque*;
struct PoolOpaque;
using Pool = PoolOpaque*;
struct GraphExecOpaque;
using GraphExec = GraphExecOpaque*;
struct EventOpaque;
using Event = EventOpaque*;
enum class Bytes : std::size_t {};
using Pointer = void*;
using PointerOut = void**;

}  // namespace dshang::interpose::abi

// The simulator's own declarations against the real headers, where they are installed.
#ifdef SIMGPU_HAS_CUDA_HEADERS
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <vector>

#include "catch.h"
#include "simgpu/core/abi.h"
#include "simgpu/core/profile.h"

static_assert(static_cast<int>(cudaErrorMemoryAllocation) == simgpu::kOutOfMemory);
static_assert(static_cast<int>(cudaErrorInitializationError) == simgpu::kNotInitialized);
static_assert(static_cast<int>(cudaErrorInvalidConfiguration) == simgpu::kInvalidConfiguration);
static_assert(static_cast<int>(cudaErrorInvalidSymbol) == simgpu::kInvalidSymbol);
static_assert(static_cast<int>(cudaErrorInvalidMemcpyDirection) == simgpu::kInvalidMemcpyDirection);
static_assert(static_cast<int>(cudaErrorMissingConfiguration) == simgpu::kMissingConfiguration);
static_assert(static_cast<int>(cudaErrorNoDevice) == simgpu::kNoDevice);
static_assert(static_cast<int>(cudaErrorInvalidDevice) == simgpu::kInvalidDevice);
static_assert(static_cast<int>(CUDA_ERROR_INVALID_CONTEXT) == simgpu::kInvalidContext);
static_assert(static_cast<int>(cudaErrorInvalidResourceHandle) == simgpu::kInvalidHandle);
static_assert(static_cast<int>(cudaErrorIllegalState) == simgpu::kIllegalState);
static_assert(static_cast<int>(CUDA_ERROR_NOT_FOUND) == simgpu::kNotFound);
static_assert(static_cast<int>(cudaErrorNotReady) == simgpu::kNotReady);
static_assert(static_cast<int>(cudaErrorIllegalAddress) == simgpu::kIllegalAddress);
static_assert(static_cast<int>(cudaErrorPeerAccessAlreadyEnabled) == simgpu::kPeerAlreadyEnabled);
static_assert(static_cast<int>(cudaErrorPeerAccessNotEnabled) == simgpu::kPeerNotEnabled);
static_assert(static_cast<int>(cudaErrorHostMemoryAlreadyRegistered) == simgpu::kHostAlreadyRegistered);
static_assert(static_cast<int>(cudaErrorHostMemoryNotRegistered) == simgpu::kHostNotRegistered);
static_assert(static_cast<int>(cudaErrorLaunchFailure) == simgpu::kLaunchFailure);
static_assert(static_cast<int>(cudaErrorNotSupported) == simgpu::kNotSupported);
static_assert(static_cast<int>(cudaErrorStreamCaptureUnsupported) == simgpu::kCaptureUnsupported);
static_assert(static_cast<int>(cudaErrorStreamCaptureInvalidated) == simgpu::kCaptureInvalidated);
static_assert(static_cast<int>(cudaErrorStreamCaptureMerge) == simgpu::kCaptureMerge);
static_assert(static_cast<int>(cudaErrorStreamCaptureUnmatched) == simgpu::kCaptureUnmatched);
static_assert(static_cast<int>(cudaErrorStreamCaptureUnjoined) == simgpu::kCaptureUnjoined);
static_assert(static_cast<int>(cudaErrorStreamCaptureIsolation) == simgpu::kCaptureIsolation);
static_assert(static_cast<int>(cudaErrorStreamCaptureImplicit) == simgpu::kCaptureImplicit);
static_assert(static_cast<int>(cudaErrorCapturedEvent) == simgpu::kCapturedEvent);
static_assert(static_cast<int>(cudaErrorStreamCaptureWrongThread) == simgpu::kCaptureWrongThread);
static_assert(static_cast<int>(cudaErrorUnknown) == simgpu::kUnknownError);

TEST_CASE("device properties lie where the real header has them") {
  // Bytes behind the structure must stay as they are.
  std::vector<unsigned char> memory(sizeof(cudaDeviceProp) + 64, 0xab);
  cudaDeviceProp* properties = reinterpret_cast<cudaDeviceProp*>(memory.data());
  REQUIRE(cudaGetDeviceProperties(properties, 1) == cudaSuccess);
  for (size_t i = sizeof(cudaDeviceProp); i < memory.size(); ++i) CHECK(memory[i] == 0xab);
  namespace profile = simgpu::profile;
  CHECK(std::strcmp(properties->name, profile::kName) == 0);
  CHECK(static_cast<unsigned char>(properties->uuid.bytes[1]) == profile::uuid_byte(1, 1));
  CHECK(properties->totalGlobalMem == size_t{80} << 30);
  CHECK(properties->sharedMemPerBlock == profile::kSharedPerBlock);
  CHECK(properties->warpSize == profile::kWarpSize);
  CHECK(properties->maxThreadsDim[2] == profile::kBlockDimZ);
  CHECK(properties->maxGridSize[1] == profile::kGridDimYZ);
  CHECK(properties->major == 9);
  CHECK(properties->minor == 0);
  CHECK(properties->multiProcessorCount == profile::kMultiprocessors);
  CHECK(properties->integrated == 0);
  CHECK(properties->canMapHostMemory == 1);
  CHECK(properties->maxTexture1D == profile::kTextureExtent);
  CHECK(properties->maxSurfaceCubemapLayered[1] == profile::kTextureExtent);
  CHECK(properties->surfaceAlignment == profile::kTextureAlignment);
  CHECK(properties->pciBusID == profile::pci_bus(1));
  CHECK(properties->pciDeviceID == 0);
  CHECK(properties->pciDomainID == 0);
  CHECK(properties->asyncEngineCount == profile::kCopyEngines);
  CHECK(properties->memoryBusWidth == profile::kMemoryBusBits);
  CHECK(properties->l2CacheSize == profile::kL2Bytes);
  CHECK(properties->maxThreadsPerMultiProcessor == profile::kThreadsPerMultiprocessor);
  CHECK(properties->sharedMemPerMultiprocessor == profile::kSharedPerMultiprocessor);
  CHECK(properties->multiGpuBoardGroupID == 1);
  CHECK(properties->cooperativeLaunch == 1);
  CHECK(properties->sharedMemPerBlockOptin == profile::kSharedPerBlockOptin);
  CHECK(properties->maxBlocksPerMultiProcessor == profile::kBlocksPerMultiprocessor);
  CHECK(properties->reservedSharedMemPerBlock == profile::kSharedReservedPerBlock);
  CHECK(properties->memoryPoolsSupported == 1);
  CHECK(properties->clusterLaunch == 1);
  CHECK(properties->deviceNumaId == -1);
}

TEST_CASE("attributes agree with the properties") {
  const auto attribute = [](cudaDeviceAttr which) {
    int value = -1;
    REQUIRE(cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess);
    return value;
  };
  cudaDeviceProp properties;
  REQUIRE(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK(attribute(cudaDevAttrMaxThreadsPerBlock) == properties.maxThreadsPerBlock);
  CHECK(attribute(cudaDevAttrMaxGridDimZ) == properties.maxGridSize[2]);
  CHECK(attribute(cudaDevAttrMultiProcessorCount) == properties.multiProcessorCount);
  CHECK(attribute(cudaDevAttrPciBusId) == properties.pciBusID);
  CHECK(attribute(cudaDevAttrL2CacheSize) == properties.l2CacheSize);
  CHECK(attribute(cudaDevAttrComputeCapabilityMajor) == properties.major);
  CHECK(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) ==
        static_cast<int>(properties.sharedMemPerBlockOptin));
  CHECK(attribute(cudaDevAttrConcurrentManagedAccess) == properties.concurrentManagedAccess);
  CHECK(attribute(cudaDevAttrMemoryPoolsSupported) == properties.memoryPoolsSupported);
  CHECK(attribute(cudaDevAttrNumaId) == properties.deviceNumaId);
}

TEST_CASE("attributes of functions and addresses lie where the real header has them") {
  std::vector<unsigned char> memory(sizeof(cudaFuncAttributes) + 16, 0xab);
  cudaFuncAttributes* function = reinterpret_cast<cudaFuncAttributes*>(memory.data());
  REQUIRE(cudaFuncGetAttributes(function, nullptr) == cudaSuccess);
  CHECK(memory[sizeof(cudaFuncAttributes)] == 0xab);
  CHECK(function->maxThreadsPerBlock == 1024);
  CHECK(function->binaryVersion == 90);
  CHECK(function->maxDynamicSharedSizeBytes == 49152);
  CHECK(function->preferredShmemCarveout == -1);

  void* address = nullptr;
  REQUIRE(cudaMallocHost(&address, 64) == cudaSuccess);
  std::vector<unsigned char> more(sizeof(cudaPointerAttributes) + 16, 0xab);
  cudaPointerAttributes* pointer = reinterpret_cast<cudaPointerAttributes*>(more.data());
  REQUIRE(cudaPointerGetAttributes(pointer, address) == cudaSuccess);
  CHECK(more[sizeof(cudaPointerAttributes)] == 0xab);
  CHECK(pointer->type == cudaMemoryTypeHost);
  CHECK(pointer->device == 0);
  CHECK(pointer->hostPointer == address);
  REQUIRE(cudaFreeHost(address) == cudaSuccess);
}

TEST_CASE("a launch configuration is read where the real header has it") {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3{2, 1, 1};
  config.blockDim = dim3{32, 1, 1};
  config.stream = stream;
  REQUIRE(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(&config), nullptr) == cudaSuccess);
  CUlaunchConfig driver_config = {};
  driver_config.gridDimX = 1;
  driver_config.hStream = stream;
  REQUIRE(cuLaunchKernelEx(&driver_config, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* dependencies = nullptr;
  size_t count = 0;
  REQUIRE(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &dependencies, nullptr, &count) ==
          cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusActive);
  CHECK(count == 1);
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphGetNodes(graph, nullptr, &count) == cudaSuccess);
  CHECK(count == 2);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("physical memory is described as the real header has it") {
  REQUIRE(cudaSetDevice(2) == cudaSuccess);
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 2;
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  REQUIRE(cuMemGetInfo(&before, &total) == CUDA_SUCCESS);
  CUmemGenericAllocationHandle handle = 0;
  REQUIRE(cuMemCreate(&handle, size_t{2} << 20, &properties, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemGetInfo(&after, &total) == CUDA_SUCCESS);
  CHECK(before - after == size_t{2} << 20);
  CUmemAllocationProp read_back;
  REQUIRE(cuMemGetAllocationPropertiesFromHandle(&read_back, handle) == CUDA_SUCCESS);
  CHECK(read_back.location.id == 2);
  REQUIRE(cuMemRelease(handle) == CUDA_SUCCESS);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}
#endif

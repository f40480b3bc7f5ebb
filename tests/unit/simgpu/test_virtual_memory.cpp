#include "api.h"
#include "catch.h"

using namespace simgpu;

namespace {

constexpr size_t kUnit = size_t{2} << 20;

// CUmemAllocationProp: type pinned, no export, location device `device`.
struct Properties {
  int type = 1;
  int handle_types = 0;
  int location_type = 1;
  int device = 0;
  void* metadata = nullptr;
  unsigned char flags[8] = {};
};

// CUmemAccessDesc: location, flags read and write.
struct Access {
  int location_type = 1;
  int device = 0;
  int flags = 3;
};

size_t free_memory() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  REQUIRE(cudaMemGetInfo(&free_bytes, &total_bytes) == kSuccess);
  return free_bytes;
}

}  // namespace

TEST_CASE("physical memory counts until it is released and unmapped") {
  REQUIRE(cudaSetDevice(0) == kSuccess);
  const size_t before = free_memory();
  unsigned long long base = 0;
  unsigned long long handle = 0;
  const Properties properties;
  const Access access;
  REQUIRE(cuMemAddressReserve(&base, 8 * kUnit, 0, 0, 0) == kSuccess);
  CHECK(base % kUnit == 0);
  CHECK(free_memory() == before);
  REQUIRE(cuMemCreate(&handle, kUnit, &properties, 0) == kSuccess);
  CHECK(free_memory() == before - kUnit);
  REQUIRE(cuMemMap(base + kUnit, kUnit, 0, handle, 0) == kSuccess);
  REQUIRE(cuMemSetAccess(base + kUnit, kUnit, &access, 1) == kSuccess);
  REQUIRE(cudaMemset(reinterpret_cast<void*>(base + kUnit), 3, kUnit) == kSuccess);
  CHECK(*reinterpret_cast<char*>(base + 2 * kUnit - 1) == 3);

  unsigned long long retained = 0;
  REQUIRE(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(base + kUnit + 100)) == kSuccess);
  CHECK(retained == handle);
  REQUIRE(cuMemRelease(retained) == kSuccess);

  REQUIRE(cuMemRelease(handle) == kSuccess);
  CHECK(free_memory() == before - kUnit);  // still mapped
  CHECK(cuMemAddressFree(base, 8 * kUnit) == kInvalidValue);
  REQUIRE(cuMemUnmap(base + kUnit, kUnit) == kSuccess);
  CHECK(free_memory() == before);
  CHECK(cudaMemset(reinterpret_cast<void*>(base + kUnit), 3, kUnit) == kInvalidValue);
  REQUIRE(cuMemAddressFree(base, 8 * kUnit) == kSuccess);
  cudaGetLastError();
}

TEST_CASE("neighbouring mappings are one range") {
  unsigned long long base = 0;
  unsigned long long handles[2] = {};
  const Properties properties;
  const Access access;
  REQUIRE(cuMemAddressReserve(&base, 2 * kUnit, 0, 0, 0) == kSuccess);
  for (size_t i = 0; i < 2; ++i) {
    REQUIRE(cuMemCreate(&handles[i], kUnit, &properties, 0) == kSuccess);
    REQUIRE(cuMemMap(base + i * kUnit, kUnit, 0, handles[i], 0) == kSuccess);
  }
  REQUIRE(cuMemSetAccess(base, 2 * kUnit, &access, 1) == kSuccess);
  CHECK(cudaMemset(reinterpret_cast<void*>(base), 1, 2 * kUnit) == kSuccess);
  REQUIRE(cuMemUnmap(base, 2 * kUnit) == kSuccess);
  for (unsigned long long handle : handles) REQUIRE(cuMemRelease(handle) == kSuccess);
  REQUIRE(cuMemAddressFree(base, 2 * kUnit) == kSuccess);
}

TEST_CASE("virtual memory that makes no sense is refused") {
  unsigned long long base = 0;
  unsigned long long handle = 0;
  Properties properties;
  CHECK(cuMemAddressReserve(&base, 1000, 0, 0, 0) == kInvalidValue);
  CHECK(cuMemCreate(&handle, 1000, &properties, 0) == kInvalidValue);
  CHECK(cuMemCreate(&handle, size_t{1} << 45, &properties, 0) == kOutOfMemory);
  properties.device = 99;
  CHECK(cuMemCreate(&handle, kUnit, &properties, 0) == kInvalidDevice);
  CHECK(cuMemMap(0x1000000, kUnit, 0, 12345, 0) == kInvalidValue);
  CHECK(cuMemRelease(12345) == kInvalidValue);
}

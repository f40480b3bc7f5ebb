#include "interpose/resolve/elf.h"

#include <elf.h>
#include <link.h>
#include <string.h>

namespace dshang::interpose::resolve {
namespace {

// glibc relocates the addresses in the dynamic section of most objects in place, but not in read-only ones (vdso).
std::uintptr_t absolute(std::uintptr_t address, std::uintptr_t base) {
  return address < base ? address + base : address;
}

bool read_object(const dl_phdr_info& info, Object* object) {
  *object = Object{};
  object->base = info.dlpi_addr;
  object->begin = UINTPTR_MAX;
  const ElfW(Dyn)* dynamic = nullptr;
  for (unsigned i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type == PT_LOAD) {
      std::uintptr_t from = info.dlpi_addr + header.p_vaddr;
      if (from < object->begin) object->begin = from;
      if (from + header.p_memsz > object->end) object->end = from + header.p_memsz;
    } else if (header.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + header.p_vaddr);
    }
  }
  for (; dynamic && dynamic->d_tag != DT_NULL; ++dynamic) {
    auto at = reinterpret_cast<const void*>(absolute(dynamic->d_un.d_ptr, info.dlpi_addr));
    if (dynamic->d_tag == DT_SYMTAB) object->symbols = at;
    if (dynamic->d_tag == DT_STRTAB) object->strings = static_cast<const char*>(at);
    if (dynamic->d_tag == DT_GNU_HASH) object->gnu_hash = static_cast<const std::uint32_t*>(at);
    if (dynamic->d_tag == DT_HASH) object->sysv_hash = static_cast<const std::uint32_t*>(at);
  }
  return object->symbols && object->strings && (object->gnu_hash || object->sysv_hash);
}

void* function_at(const Object& object, std::uint32_t index, const char* name) {
  const ElfW(Sym)& symbol = static_cast<const ElfW(Sym)*>(object.symbols)[index];
  // STT_GNU_IFUNC would have to be called to get the function; no library in question has any.
  unsigned type = ELF64_ST_TYPE(symbol.st_info);
  if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_NOTYPE)) return nullptr;
  if (strcmp(object.strings + symbol.st_name, name) != 0) return nullptr;
  return reinterpret_cast<void*>(object.base + symbol.st_value);
}

// Layout and hash function: https://flapenguin.me/elf-dt-gnu-hash and the glibc manual of dl hash sections.
void* by_gnu_hash(const Object& object, const char* name) {
  std::uint32_t hash = 5381;
  for (const char* c = name; *c; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
  const std::uint32_t* table = object.gnu_hash;
  std::uint32_t bucket_count = table[0], first = table[1], bloom_words = table[2], bloom_shift = table[3];
  auto bloom = reinterpret_cast<const ElfW(Addr)*>(table + 4);
  auto buckets = reinterpret_cast<const std::uint32_t*>(bloom + bloom_words);
  const std::uint32_t* chain = buckets + bucket_count;
  if (!bucket_count || !bloom_words) return nullptr;
  constexpr unsigned kBits = sizeof(ElfW(Addr)) * 8;
  ElfW(Addr) word = bloom[hash / kBits % bloom_words];
  if (!(word >> (hash % kBits) & word >> ((hash >> bloom_shift) % kBits) & 1)) return nullptr;
  std::uint32_t index = buckets[hash % bucket_count];
  if (index < first) return nullptr;
  for (;; ++index) {
    std::uint32_t found = chain[index - first];
    if ((found | 1) == (hash | 1)) {
      if (void* function = function_at(object, index, name)) return function;
    }
    if (found & 1) return nullptr;
  }
}

void* by_sysv_hash(const Object& object, const char* name) {
  std::uint32_t hash = 0;
  for (const char* c = name; *c; ++c) {
    hash = (hash << 4) + static_cast<unsigned char>(*c);
    std::uint32_t high = hash & 0xf0000000;
    hash = (hash ^ high >> 24) & ~high;
  }
  std::uint32_t bucket_count = object.sysv_hash[0];
  const std::uint32_t* buckets = object.sysv_hash + 2;
  const std::uint32_t* chain = buckets + bucket_count;
  if (!bucket_count) return nullptr;
  for (std::uint32_t index = buckets[hash % bucket_count]; index != STN_UNDEF; index = chain[index]) {
    if (void* function = function_at(object, index, name)) return function;
  }
  return nullptr;
}

struct Search {
  const void* address;
  const char* name;
  Object* object;
  bool behind_own = false;
};

int holds_address(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  Object object;
  read_object(*info, &object);
  if (!object.holds(search->address)) return 0;
  *search->object = object;
  return 1;
}

struct Order {
  const void *first, *second;
  bool first_came;
};

int in_order(dl_phdr_info* info, size_t, void* data) {
  auto* order = static_cast<Order*>(data);
  Object object;
  read_object(*info, &object);
  if (object.holds(order->second)) return order->first_came && !object.holds(order->first) ? 1 : -1;
  order->first_came |= object.holds(order->first);
  return 0;
}

int defines_name(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  Object object;
  bool complete = read_object(*info, &object);
  if (object.holds(reinterpret_cast<const void*>(&is_own))) {
    search->behind_own = true;
    return 0;
  }
  if (!complete || !search->behind_own) return 0;
  if (!defined_function(object, search->name)) return 0;
  *search->object = object;
  return 1;
}

}  // namespace

void* defined_function(const Object& object, const char* name) {
  if (object.gnu_hash) return by_gnu_hash(object, name);
  return object.sysv_hash ? by_sysv_hash(object, name) : nullptr;
}

bool object_of(const void* address, Object* object) {
  Search search{address, nullptr, object};
  return dl_iterate_phdr(holds_address, &search) == 1;
}

bool loaded_before(const void* first, const void* second) {
  Order order{first, second, false};
  return dl_iterate_phdr(in_order, &order) == 1;
}

bool in_front(const void* address) { return loaded_before(address, reinterpret_cast<const void*>(&is_own)); }

bool object_defining(const char* name, Object* object) {
  Search search{nullptr, name, object};
  return dl_iterate_phdr(defines_name, &search) == 1;
}

bool is_own(const void* address) {
  static std::uintptr_t begin, end;  // equal values, whoever writes them
  if (!__atomic_load_n(&end, __ATOMIC_ACQUIRE)) {
    Object own;
    if (!object_of(reinterpret_cast<const void*>(&is_own), &own)) return false;
    __atomic_store_n(&begin, own.begin, __ATOMIC_RELAXED);
    __atomic_store_n(&end, own.end, __ATOMIC_RELEASE);
  }
  auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= __atomic_load_n(&begin, __ATOMIC_RELAXED) && at < end;
}

}  // namespace dshang::interpose::resolve

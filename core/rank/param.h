// Environment variables of dshang, declared beside their use:
//
//   DSHANG_PARAM(seconds, STALL_AFTER, "30", "0.1..86400", "seconds without progress before a judged
//   finding");
//   ... param_STALL_AFTER.value() ...
//
// declares DSHANG_STALL_AFTER.  One declaration is all: typed access, range check, `dshang --params`, the
// README table and the warning about mistyped names follow from it.  The description lies as plain bytes in
// the ELF section dshang_params, so that the program lists the parameters of libdshang.so by reading that
// file.
//
//   type              value()            range
//   bool              bool               "0|1"
//   integer           std::int64_t       "LOW..HIGH"
//   seconds           double             "LOW..HIGH"
//   string            const char*        what is expected, in words; 4095 bytes at most
//   percent_or_bytes  PercentOrBytes     "LOW%..HIGH%"; any number of bytes, with K, M, G, T or KiB, MiB,
//   GiB, TiB (1024) choice            Choice             "a|b|c:*": `*` stands for anything but nothing
//
// value() reads the environment at its first use and never again; a missing, empty or bad value gives the
// default. It prints nothing, in no process: what is wrong in the environment is said once a job, by the
// monitor, through complain_about().
//
// Threads: value() by any.  Not for the recorded path: keep the value.  Freestanding, no allocation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dshang::rank {

inline constexpr char kParamMagic[8] = {'D', 'S', 'H', 'P', 'A', 'R', 'M', '1'};

// As it lies in the file; every text ends with a zero byte.
struct ParamDescriptor {
  char magic[8];
  char type[20];
  char name[44];  // without DSHANG_
  char fallback[64];
  char range[96];
  char text[408];
};
static_assert(sizeof(ParamDescriptor) == 640);

struct PercentOrBytes {
  double percent;       // meaningful if is_percent
  std::uint64_t bytes;  // else
  bool is_percent;
  std::uint64_t of(std::uint64_t total) const {
    return is_percent ? static_cast<std::uint64_t>(static_cast<double>(total) * percent / 100.0) : bytes;
  }
};

struct Choice {
  unsigned index;    // position in the range
  const char* text;  // the whole value, for "exec:*" with what stands for the star
};

// Whether the descriptor's range holds the value.  An empty text counts as not set and is accepted.
bool param_accepts(const ParamDescriptor& param, const char* text);

// If `text` is not acceptable writes one line without newline ("DSHANG_X=abc is not ...; the default 30 is
// used").
bool complain_about(const ParamDescriptor& param, const char* text, char* line, std::size_t size);

namespace detail {

// Value of the environment, else the default, as texts are parsed; `text` is accepted already.
const char* param_text(const ParamDescriptor& param);  // kept for good
void parse(const ParamDescriptor& param, const char* text, bool* value);
void parse(const ParamDescriptor& param, const char* text, std::int64_t* value);
void parse(const ParamDescriptor& param, const char* text, double* value);
void parse(const ParamDescriptor& param, const char* text, const char** value);
void parse(const ParamDescriptor& param, const char* text, PercentOrBytes* value);
void parse(const ParamDescriptor& param, const char* text, Choice* value);

// True for the one thread that has to read; false once another has read (or has hung in it).
bool claim_param(std::atomic<std::uint8_t>& state);

}  // namespace detail

template <typename Value>
class Param {
 public:
  constexpr explicit Param(const ParamDescriptor& descriptor) : descriptor_(descriptor) {}
  const ParamDescriptor& descriptor() const { return descriptor_; }

  Value value() {
    if (state_.load(std::memory_order_acquire) == kRead) return value_;
    if (detail::claim_param(state_)) {
      detail::parse(descriptor_, detail::param_text(descriptor_), &value_);
      state_.store(kRead, std::memory_order_release);
    }
    if (state_.load(std::memory_order_acquire) == kRead) return value_;
    Value fallback{};
    detail::parse(descriptor_, descriptor_.fallback, &fallback);
    return fallback;
  }

 private:
  static constexpr std::uint8_t kRead = 2;
  const ParamDescriptor& descriptor_;
  std::atomic<std::uint8_t> state_{0};
  Value value_{};
};

using ParamType_bool = Param<bool>;
using ParamType_integer = Param<std::int64_t>;
using ParamType_seconds = Param<double>;
using ParamType_string = Param<const char*>;
using ParamType_percent_or_bytes = Param<PercentOrBytes>;
using ParamType_choice = Param<Choice>;

}  // namespace dshang::rank

#define DSHANG_PARAM(type, NAME, fallback, range, text)                                   \
  [[gnu::section("dshang_params"), gnu::used]] alignas(                                   \
      32) static constinit const ::dshang::rank::ParamDescriptor param_descriptor_##NAME{ \
      {'D', 'S', 'H', 'P', 'A', 'R', 'M', '1'}, #type, #NAME, fallback, range, text};     \
  [[maybe_unused]] static constinit ::dshang::rank::ParamType_##type param_##NAME { param_descriptor_##NAME }

// Compares rows with real headers: a row that is declared otherwise does not compile.
#pragma once

#include <type_traits>

#include "interpose/symbols/rows.h"

namespace dshang::interpose {
// Whether two types are passed to a function in the same way.
template <typename Ours, typename Theirs>
constexpr bool passed_alike() {
  constexpr bool ours_integer = std::is_integral_v<Ours> || std::is_enum_v<Ours>;
  constexpr bool theirs_integer = std::is_integral_v<Theirs> || std::is_enum_v<Theirs>;
  if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
    return std::is_void_v<Ours> && std::is_void_v<Theirs>;
  } else {
    // Types of parameters, pointers among them.
    return sizeof(Ours) == sizeof(Theirs) &&  // NOLINT(bugprone-sizeof-expression)
           std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> && ours_integer == theirs_integer &&
           std::is_class_v<Ours> == std::is_class_v<Theirs> && std::is_trivially_copyable_v<Theirs>;
  }
}

template <typename Ours, typename Theirs>
struct Alike : std::false_type {};
template <typename R1, typename... P1, typename R2, typename... P2>
requires(sizeof...(P1) == sizeof...(P2)) struct Alike<R1 (*)(P1...), R2 (*)(P2...)>
    : std::bool_constant<passed_alike<R1, R2>() && (passed_alike<P1, P2>() && ...)> {
};

#define DSHANG_DECLARED(name)                                            \
  static_assert(Alike<SignatureOf<Row::name>, decltype(&::name)>::value, \
                "the row of " #name " is not what the header says");

}  // namespace dshang::interpose

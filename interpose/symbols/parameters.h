// Turns the parameter types of a row into parameters, arguments and types, by preprocessor.
//
//   DSHANG_PARAMETERS (int, char*)   ->  int a1, char* a2
//   DSHANG_ARGUMENTS (int, char*)    ->  , a1, a2
//   DSHANG_TYPES (int, char*)        ->  , int, char*
//
// At most 12 parameters; a row with more does not compile.
#pragma once

#define DSHANG_COUNT_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, n, ...) n
#define DSHANG_COUNT(...) DSHANG_COUNT_(__VA_ARGS__ __VA_OPT__(, ) 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define DSHANG_JOIN_(a, b) a##b
#define DSHANG_JOIN(a, b) DSHANG_JOIN_(a, b)

#define DSHANG_PARAMETERS(...) DSHANG_JOIN(DSHANG_P, DSHANG_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define DSHANG_P0()
#define DSHANG_P1(t) t a1
#define DSHANG_P2(t, u) DSHANG_P1(t), u a2
#define DSHANG_P3(t, u, v) DSHANG_P2(t, u), v a3
#define DSHANG_P4(t, u, v, w) DSHANG_P3(t, u, v), w a4
#define DSHANG_P5(t, u, v, w, x) DSHANG_P4(t, u, v, w), x a5
#define DSHANG_P6(t, u, v, w, x, y) DSHANG_P5(t, u, v, w, x), y a6
#define DSHANG_P7(t, u, v, w, x, y, z) DSHANG_P6(t, u, v, w, x, y), z a7
#define DSHANG_P8(t, u, v, w, x, y, z, a) DSHANG_P7(t, u, v, w, x, y, z), a a8
#define DSHANG_P9(t, u, v, w, x, y, z, a, b) DSHANG_P8(t, u, v, w, x, y, z, a), b a9
#define DSHANG_P10(t, u, v, w, x, y, z, a, b, c) DSHANG_P9(t, u, v, w, x, y, z, a, b), c a10
#define DSHANG_P11(t, u, v, w, x, y, z, a, b, c, d) DSHANG_P10(t, u, v, w, x, y, z, a, b, c), d a11
#define DSHANG_P12(t, u, v, w, x, y, z, a, b, c, d, e) DSHANG_P11(t, u, v, w, x, y, z, a, b, c, d), e a12

#define DSHANG_ARGUMENTS(...) DSHANG_JOIN(DSHANG_A, DSHANG_COUNT(__VA_ARGS__))
#define DSHANG_A0
#define DSHANG_A1 , a1
#define DSHANG_A2 DSHANG_A1, a2
#define DSHANG_A3 DSHANG_A2, a3
#define DSHANG_A4 DSHANG_A3, a4
#define DSHANG_A5 DSHANG_A4, a5
#define DSHANG_A6 DSHANG_A5, a6
#define DSHANG_A7 DSHANG_A6, a7
#define DSHANG_A8 DSHANG_A7, a8
#define DSHANG_A9 DSHANG_A8, a9
#define DSHANG_A10 DSHANG_A9, a10
#define DSHANG_A11 DSHANG_A10, a11
#define DSHANG_A12 DSHANG_A11, a12

#define DSHANG_TYPES(...) __VA_OPT__(, ) __VA_ARGS__

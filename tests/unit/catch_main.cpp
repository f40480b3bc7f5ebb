// Catch2 version 2 wants its main in one translation unit; version 3 brings a library for it.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

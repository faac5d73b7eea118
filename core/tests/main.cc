// Runs the tests: core_tests [--seed=N] [part of a name]

#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "core/tests/testing.h"

int main(int argc, char** argv) {
  using dynhac::testing::Case;
  dynhac::testing::State& state = dynhac::testing::state();
  const std::string seed_option = "--seed=";
  std::string filter;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with(seed_option)) {
      try {
        state.base_seed = std::stoull(argument.substr(seed_option.size()));
      } catch (const std::exception&) {
        std::cerr << argument << ": the seed must be an integer >= 0\n";
        return 2;
      }
    } else {
      filter = argument;
    }
  }

  int passed = 0, failed = 0;
  for (const Case& test : state.cases) {
    if (std::string(test.name).find(filter) == std::string::npos) continue;
    state.failures = 0;
    state.has_seed = false;
    const auto start = std::chrono::steady_clock::now();
    try {
      test.run();
    } catch (const std::exception& error) {
      dynhac::testing::fail(test.name, 0, std::string("left by an exception: ") + error.what());
    } catch (...) {
      dynhac::testing::fail(test.name, 0, "left by an exception of unknown type");
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (state.failures > 0) {
      std::cout << "FAILED " << test.name << " (" << state.failures << " failures)\n";
    } else if (time.count() > 1.0) {
      std::cout << "slow   " << test.name << " (" << time.count() << " s)\n";
    }
    ++(state.failures > 0 ? failed : passed);
  }
  std::cout << passed << " passed, " << failed << " failed\n";
  // A filter that matches no test is a mistake, not a success.
  return failed > 0 || passed == 0 ? 1 : 0;
}

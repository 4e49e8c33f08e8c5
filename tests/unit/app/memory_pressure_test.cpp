#include "tandem/app/memory_pressure.hpp"

#include <cstdio>
#include <fstream>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

namespace tandem::app {
namespace {

TEST(MemoryPressure, ReadsTheTenSecondAverageOfSome) {
  EXPECT_EQ(
      parse_pressure("some avg10=12.34 avg60=1.00 avg300=0.50 total=9\nfull avg10=0.00 avg60=0 avg300=0 total=0\n"),
      12.34);
  EXPECT_EQ(parse_pressure("full avg10=7.00 total=1\nsome avg10=0.00 total=1\n"), 0.0);
}

TEST(MemoryPressure, TakesNothingForANumberThatIsNone) {
  for (const char* bad : {"", "full avg10=7.00\n", "some avg60=1\n", "some avg10=x\n", "some avg10=-1\n",
                          "some avg10=101\n", "awesome avg10=3\n"})
    EXPECT_FALSE(parse_pressure(bad)) << bad;
}

TEST(MemoryPressure, FollowsTheConfiguredFileAndSurvivesItsAbsence) {
  const std::string path = testing::TempDir() + "tandem_pressure_" + std::to_string(::getpid());
  MemoryPressure pressure(path);
  EXPECT_FALSE(pressure.sample());
  std::ofstream(path) << "some avg10=55.50 avg60=0 avg300=0 total=0\n";
  EXPECT_EQ(pressure.sample(), 55.5);
  std::remove(path.c_str());
  EXPECT_FALSE(pressure.sample());
}

}  // namespace
}  // namespace tandem::app

#include "tandem/client/ending.hpp"

#include <gtest/gtest.h>

namespace tandem::client {
namespace {

struct Row {
  Ending ending;
  Next next;
  std::optional<Duration> wait;
};

class Reactions : public ::testing::TestWithParam<Row> {};

TEST_P(Reactions, FollowTheTableOfClosesAndStatuses) {
  const Reaction reaction = react(GetParam().ending);
  EXPECT_EQ(reaction.next, GetParam().next) << describe(GetParam().ending);
  EXPECT_EQ(reaction.wait, GetParam().wait) << describe(GetParam().ending);
}

INSTANTIATE_TEST_SUITE_P(
    All, Reactions,
    ::testing::Values(
        Row{NoConnection{}, Next::refresh_map, {}}, Row{Refused{421, "misdirected"}, Next::refresh_map, {}},
        Row{Closed{4421, "reshard"}, Next::refresh_map, {}}, Row{Closed{4421, "reshard b.test"}, Next::refresh_map, {}},
        Row{Closed{4421, ""}, Next::refresh_map, {}}, Row{Closed{1008, "reshard b.test"}, Next::refresh_map, {}},
        Row{Closed{1001, "reshard"}, Next::refresh_map, {}}, Row{Closed{1008, "reshards"}, Next::same_host, {}},
        Row{Refused{429, ""}, Next::same_host, {}}, Row{Refused{500, ""}, Next::same_host, {}},
        Row{Refused{503, ""}, Next::same_host, {}}, Row{Refused{302, ""}, Next::same_host, {}},
        Row{Refused{400, ""}, Next::give_up, {}}, Row{Refused{403, ""}, Next::give_up, {}},
        Row{Refused{404, ""}, Next::give_up, {}}, Row{Refused{405, ""}, Next::give_up, {}},
        Row{Refused{413, ""}, Next::give_up, {}}, Row{Refused{431, ""}, Next::give_up, {}},
        Row{Closed{1008, "daily quota exceeded"}, Next::same_host, kQuotaWait},
        Row{Closed{1000, "displaced"}, Next::same_host, kDisplacedWait},
        Row{Closed{1008, "displaced"}, Next::same_host, {}}, Row{Closed{1008, "mac offline"}, Next::same_host, {}},
        Row{Closed{1008, "bad signature"}, Next::same_host, {}},
        Row{Closed{1008, "ticket required"}, Next::same_host, {}}, Row{Closed{1001, "peer gone"}, Next::same_host, {}},
        Row{Closed{1001, "server shutting down"}, Next::same_host, {}},
        Row{Closed{1001, "shedding"}, Next::same_host, {}}, Row{Closed{1000, "room deleted"}, Next::pair_again, {}},
        Row{Closed{1000, "room expired"}, Next::pair_again, {}},
        Row{Closed{1000, "pairing cycle cap"}, Next::pair_again, {}}, Row{Closed{1000, ""}, Next::same_host, {}},
        Row{Closed{1009, "frame too large"}, Next::same_host, {}}, Row{Closed{1011, ""}, Next::same_host, {}},
        Row{Closed{1002, ""}, Next::same_host, {}}, Row{Closed{1006, ""}, Next::same_host, {}}));

TEST(Ending, OnlyThePolicyCloseAsksForATicket) {
  EXPECT_TRUE(is_ticket_required(Closed{1008, "ticket required"}));
  EXPECT_FALSE(is_ticket_required(Closed{1000, "ticket required"}));
  EXPECT_FALSE(is_ticket_required(Closed{1008, "bad ticket"}));
  EXPECT_FALSE(is_ticket_required(Refused{403, "ticket required"}));
}

}  // namespace
}  // namespace tandem::client

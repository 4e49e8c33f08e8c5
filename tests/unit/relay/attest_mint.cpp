// The minting of attestations is shared with the tests of protocol/.
#include "unit/protocol/attest_mint.cpp"

// The certificates of net's tests, for this room's tests as well.
#include "unit/net/wire.cpp"

// tandemctl: the operator's tool. Every command lives in src/app/ctl_*.cpp.
#include "tandem/app/ctl_main.hpp"

int main(int argc, char** argv) { return tandem::app::run_tandemctl(argc, argv); }

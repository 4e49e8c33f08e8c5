// tandemd: the relay daemon. The whole life of the process is in app/daemon.cpp.
#include "tandem/app/daemon.hpp"

int main(int argc, char** argv) { return tandem::app::run_daemon(argc, argv); }

#include "tandem/app/map_command.hpp"
namespace tandem::app {
int map_serve(MapCommand&, const std::string&, const std::string&, const std::string&) { return kWrong; }
int map_console(MapCommand&, const std::string&) { return kWrong; }
}  // namespace tandem::app

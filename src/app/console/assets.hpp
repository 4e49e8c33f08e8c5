// The console's page: no build step, no assets from elsewhere. Each part is one raw string in a header of its own.
#pragma once

#include "app/console/css.hpp"
#include "app/console/html.hpp"
#include "app/console/ring_script.hpp"
#include "app/console/script.hpp"

// A setting at one rate, reduced to what settings are compared by.
#pragma once

#include <span>

#include "map/result.h"
#include "metrics/summary.h"

namespace goodput {

// `rate` is the offered one; the rest is computed over the records scheduled in the window.
Operating operating_at(double rate, std::span<const RequestRecord>, std::span<const ClassRule>, Window);
// The same from a stored point; percentiles over the interactive classes are then their worst class's.
Operating operating_of(const Point&, std::span<const ClassRule>);
// Every class with at least one scheduled request attains the floor.
bool meets_floor(const Operating&, double floor);

}  // namespace goodput

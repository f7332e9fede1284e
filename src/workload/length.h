// Draws from a length distribution. Internal to the room.
#pragma once

#include "base/random.h"
#include "workload/spec.h"

namespace goodput {

Tokens draw(const LengthSpec&, Random&);
Nanos draw(const TimeSpec&, Random&);
// The length below which the share `p` in (0, 1) of draws falls.
Tokens quantile(const LengthSpec&, double p);

// The bounds of every draw.
Tokens shortest(const LengthSpec&);
Tokens longest(const LengthSpec&);

}  // namespace goodput

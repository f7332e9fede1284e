// Boost.JSON compiled once, header-only: Debian's libboost-json1.81 could not be installed beside Boost 1.74's -dev.
#include <boost/json/src.hpp>

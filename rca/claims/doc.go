// Package claims has what helps a pod whose claims of devices nothing meets (DRA): other
// selectors, written clause by clause from the device that comes nearest, holders that leave,
// drivers and classes that are not there. What devices meet which clause is of rca/devices.
package claims

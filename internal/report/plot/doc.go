// Package plot draws the error of a run along the depth of its model, as PNG.
package plot

// Package transformers keeps an editable copy of the installed Python package transformers, an
// overlay, in the folder .parity/transformers beside a module's go.mod. Runs of the engines find it
// before the installed one, which stays as it is.
//
// It is for looking into the reference: a print, a parity_tap, a changed line. What it computes is
// no reference any more, so runs say that they used it, and goldens are not renewed from them.
package transformers

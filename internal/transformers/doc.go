// Package transformers keeps an editable copy of the installed Python package transformers, an
// overlay, in the folder .parity/transformers next to a module's go.mod. Engines find it before the
// installed package, which is not touched.
//
// It is for looking into the reference with a print, a parity_tap or a changed line. Since an
// edited copy is no longer the reference, runs say that they used it, and goldens are not updated
// from them.
package transformers

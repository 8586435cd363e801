// Package faults checks what the asset service does when the way to its store
// fails: refused, slow, reset amid an answer, dead without a word, coming and
// going; and when the store is not the primary any more.
//
// It is a module of its own because of what it takes to make faults.
package faults

//go:build ignore

package main

import _ "net/http"

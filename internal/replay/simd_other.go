//go:build !amd64

package replay

func tileOf[T floating]() tile[T] { return tileGo[T] }

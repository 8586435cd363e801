package boltfile

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"

	"go.etcd.io/bbolt"
)

var secretKey = []byte("secret") // in the meta bucket; its value is a checkValue

// checkValue identifies a secret without revealing it.
func checkValue(secret []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("asset-registry: the secret that this file belongs to"))
	return mac.Sum(nil)
}

// checkSecret returns an error if the file belongs to none of the secrets. It reports whether the file belongs
// to the first. A file that was made without a secret belongs to every secret.
func checkSecret(meta *bbolt.Bucket, secrets [][]byte) (current bool, err error) {
	stored := meta.Get(secretKey)
	for i, secret := range secrets {
		if bytes.Equal(stored, checkValue(secret)) {
			return i == 0, nil
		}
	}
	if stored != nil && len(secrets) > 0 {
		return false, errors.New("the secret is another than the one of the file: use the file's secret")
	}
	return len(secrets) == 0, nil
}

func putSecret(meta *bbolt.Bucket, secrets [][]byte) error {
	if len(secrets) == 0 {
		return nil
	}
	return meta.Put(secretKey, checkValue(secrets[0]))
}

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/windows"
)

// Hold locks an open file until it is closed. It locks one byte behind the end, because Windows keeps others from
// reading locked bytes.
func Hold(f *os.File) error {
	const lock = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return windows.LockFileEx(windows.Handle(f.Fd()), lock, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
}

// SyncDirectory does nothing: Windows opens no directory to write its names.
func SyncDirectory(string) error { return nil }

// Private lets nobody but this user access a file: it replaces the inherited list of access.
func Private(f *os.File) error {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return err
	}
	only, err := windows.SecurityDescriptorFromString("D:P(A;;FA;;;" + user.User.Sid.String() + ")")
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(f.Name())
	if err != nil {
		return err
	}
	const all = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	h, err := windows.CreateFile(name, windows.WRITE_DAC|windows.READ_CONTROL, all, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(h) }() // it has only changed rights
	const rights = windows.DACL_SECURITY_INFORMATION | windows.PROTECTED_DACL_SECURITY_INFORMATION
	err = windows.SetKernelObjectSecurity(h, rights, only)
	has, err2 := windows.GetSecurityInfo(h, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err = errors.Join(err, err2); err == nil && strings.Contains(has.String(), ";;;WD)") {
		err = errors.New("everybody may still read it")
	}
	if err != nil {
		return fmt.Errorf("other users can access it: this disk keeps no rights, so use one with NTFS: %w", err)
	}
	return nil
}

// Resemble gives the file w the mode of another file.
func Resemble(w *os.File, like fs.FileInfo) error { return w.Chmod(like.Mode().Perm()) }

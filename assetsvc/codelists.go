package assetsvc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/shared/codenames"
)

// maxCodeList is the most bytes of a file of codes. The longest list in use has
// fewer than 10,000 codes.
const maxCodeList = 8 << 20

// codeLists reads the operator's code lists. It returns the faults of the directory
// and of every file in it.
func (c Config) codeLists() (asset.CodeLists, error) {
	if c.CodeLists == "" {
		return nil, nil
	}
	files, err := os.ReadDir(c.CodeLists)
	if err != nil {
		return nil, fmt.Errorf("read code lists: %w", err)
	}
	lists, hasNames := asset.CodeLists{}, false
	var faults []error
	for _, file := range files {
		if strings.HasPrefix(file.Name(), ".") { // Kubernetes adds such files to a mounted directory
			continue
		}
		if _, _, isNames := codenames.File(file.Name()); isNames { // the search service reads them
			hasNames = true
			continue
		}
		path := filepath.Join(c.CodeLists, file.Name())
		if err := addCodeList(lists, path); err != nil {
			for fault := range strings.Lines(err.Error()) { // one fault a line
				faults = append(faults, fmt.Errorf("code list %s: %s", path, strings.TrimSpace(fault)))
			}
		}
	}
	if len(lists) == 0 && !hasNames && faults == nil {
		faults = append(faults, fmt.Errorf("code lists: %s has no file such as CPV.txt", c.CodeLists))
	}
	return lists, errors.Join(faults...)
}

func addCodeList(lists asset.CodeLists, path string) error {
	scheme, isText := strings.CutSuffix(filepath.Base(path), ".txt")
	if !isText {
		return errors.New("the name of a list is its scheme and .txt, such as CPV.txt; " +
			"files of names are called CPV.uk.json or CPV.en.json")
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxCodeList+1))
	if err != nil {
		return err
	}
	if len(text) > maxCodeList {
		return fmt.Errorf("it has more than %d bytes", maxCodeList)
	}
	return lists.Add(scheme, string(text))
}

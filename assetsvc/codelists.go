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
	"asset-registry/shared/command"
)

// maxCodeList is the largest size of a file of codes, in bytes. The longest list in use has fewer than 10,000
// codes.
const maxCodeList = 8 << 20

// codeLists reads the operator's code lists. It returns all faults of the directory and of its files.
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
		if strings.HasPrefix(file.Name(), ".") { // Kubernetes adds files with such names to a mounted directory
			continue
		}
		if _, _, isNames := codenames.File(file.Name()); isNames { // only the search service reads names of codes
			hasNames = true
			continue
		}
		path := filepath.Join(c.CodeLists, file.Name())
		if err := addCodeList(lists, path); err != nil {
			for fault := range strings.Lines(err.Error()) { // Add returns one fault on each line
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
	if err := command.File(path); err != nil {
		return err
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

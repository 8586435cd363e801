package mongostore

import "go.mongodb.org/mongo-driver/v2/bson"

// withID is a filter for the document with this id.
func withID(id string) bson.D { return bson.D{{Key: "_id", Value: id}} }

// withIDs is a filter for the documents with these ids.
func withIDs(ids []string) bson.D {
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}
}

// afterID is a filter for the documents whose id is greater than the given one.
func afterID(id string) bson.E {
	return bson.E{Key: "_id", Value: bson.D{{Key: "$gt", Value: id}}}
}

// The function `only` is a projection that returns the id and the named fields.
func only(names ...string) bson.D {
	fields := make(bson.D, len(names))
	for i, name := range names {
		fields[i] = bson.E{Key: name, Value: 1}
	}
	return fields
}

// set is an update that sets fields.
func set(fields ...bson.E) bson.D {
	return bson.D{{Key: "$set", Value: bson.D(fields)}}
}

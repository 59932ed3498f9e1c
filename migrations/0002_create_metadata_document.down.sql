DROP TABLE metadata_document;

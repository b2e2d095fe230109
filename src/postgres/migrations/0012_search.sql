-- The search index of knowledge bases: an inverted index in tables. A page is named by wiki_pages.row_id. Terms compare
-- by their bytes.

-- Every term of a base.
CREATE TABLE wiki_terms (
  base_id  text COLLATE "C" NOT NULL,
  term     text COLLATE "C" NOT NULL,
  -- How many pages have it.
  pages    integer NOT NULL,
  -- A bit for each letter in it (a sixteenth of Unicode a bit): words a typing error apart differ in few of them.
  -- Null: a term that is not looked for by likeness.
  letters  integer,
  -- Backwards, for terms that are looked for by likeness.
  reversed text COLLATE "C",
  PRIMARY KEY (base_id, term) INCLUDE (pages, letters)
);
CREATE INDEX wiki_terms_reversed ON wiki_terms (base_id, reversed) INCLUDE (term, pages, letters)
  WHERE reversed IS NOT NULL;

-- For each term the pages that have it, the most relevant first, in parts: a common term is read only as far as it is
-- worth it. An entry is row_id * 1024 + impact (1 to 1023).
CREATE TABLE wiki_postings (
  base_id text COLLATE "C" NOT NULL,
  term    text COLLATE "C" NOT NULL,
  part    integer NOT NULL,
  entries bigint[] NOT NULL,
  PRIMARY KEY (base_id, term, part)
);
-- Numbers in this order do not get smaller by compression.
ALTER TABLE wiki_postings ALTER COLUMN entries SET STORAGE EXTERNAL;

-- The same by page: what is taken out of the index with the page, and what its exact score is made of.
CREATE TABLE wiki_page_terms (
  row_id  bigint PRIMARY KEY,
  base_id text COLLATE "C" NOT NULL,
  terms   text[] COLLATE "C" NOT NULL,
  -- Beside the terms.
  impacts smallint[] NOT NULL
);
CREATE INDEX wiki_page_terms_base ON wiki_page_terms (base_id);

-- A trigger, because a foreign key would look a base up once for every row.
CREATE FUNCTION forget_search_index() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM wiki_terms WHERE base_id = OLD.id;
  DELETE FROM wiki_postings WHERE base_id = OLD.id;
  DELETE FROM wiki_page_terms WHERE base_id = OLD.id;
  RETURN NULL;
END $$;
CREATE TRIGGER knowledge_base_forgotten AFTER DELETE ON knowledge_bases
  FOR EACH ROW EXECUTE FUNCTION forget_search_index();

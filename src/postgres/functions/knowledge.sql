CREATE OR REPLACE TRIGGER knowledge_bases_audited AFTER INSERT OR UPDATE OR DELETE ON knowledge_bases
  FOR EACH ROW EXECUTE FUNCTION audit_change('kb', 'id', 'account_id', 'create', 'delete');

CREATE OR REPLACE FUNCTION audit_reader_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  either knowledge_readers := coalesce(NEW, OLD);
  reader jsonb := jsonb_build_object('reader_id', either.reader_id);
BEGIN
  PERFORM record_act(
    CASE TG_OP WHEN 'INSERT' THEN 'kb.grant' ELSE 'kb.revoke' END,
    (SELECT account_id FROM knowledge_bases WHERE id = either.base_id), either.base_id,
    CASE TG_OP WHEN 'DELETE' THEN reader END, CASE TG_OP WHEN 'INSERT' THEN reader END);
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER knowledge_readers_audited AFTER INSERT OR DELETE ON knowledge_readers
  FOR EACH ROW EXECUTE FUNCTION audit_reader_change();

-- A trigger, because a foreign key would look a base up once for every row.
CREATE OR REPLACE FUNCTION forget_search_index() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM wiki_terms WHERE base_id = OLD.id;
  DELETE FROM wiki_postings WHERE base_id = OLD.id;
  DELETE FROM wiki_page_terms WHERE base_id = OLD.id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER knowledge_base_forgotten AFTER DELETE ON knowledge_bases
  FOR EACH ROW EXECUTE FUNCTION forget_search_index();

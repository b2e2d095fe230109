-- Records an event in the outbox, as part of the caller's transaction. Where `wanted_crossing` has been recorded before,
-- does nothing. The names of types are those of `schemas/notifications/event.ts`.
CREATE OR REPLACE FUNCTION record_event(
  event_type text, account text, subject text, wanted_crossing text, event_data jsonb
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO events (type, account_id, subject_id, crossing, data)
  VALUES (event_type, account, subject, wanted_crossing, event_data)
  ON CONFLICT (crossing) DO NOTHING;
  IF FOUND THEN
    PERFORM pg_notify('tollgate_events', '');
  END IF;
END
$$;

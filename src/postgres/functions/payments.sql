-- Triggers of payments: the audit record, and receipts that stay as they were issued.

CREATE OR REPLACE FUNCTION audit_payment_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM record_act(
    CASE TG_OP WHEN 'INSERT' THEN 'payment.create' ELSE 'payment.update' END, NEW.account_id, NEW.id,
    CASE TG_OP WHEN 'UPDATE' THEN jsonb_build_object('state', OLD.state) END,
    CASE TG_OP WHEN 'UPDATE' THEN jsonb_build_object('state', NEW.state) ELSE jsonb_build_object(
      'kind', NEW.kind, 'state', NEW.state, 'credits', print_credits(NEW.credits),
      'amount', NEW.amount, 'currency', NEW.currency) END);
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER payments_created AFTER INSERT ON payments
  FOR EACH ROW EXECUTE FUNCTION audit_payment_change();
CREATE OR REPLACE TRIGGER payments_moved AFTER UPDATE ON payments
  FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION audit_payment_change();

CREATE OR REPLACE FUNCTION audit_method_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM record_act(
    CASE TG_OP WHEN 'INSERT' THEN 'payment_method.add' ELSE 'payment_method.remove' END, NEW.account_id, NEW.id,
    CASE TG_OP WHEN 'UPDATE' THEN jsonb_build_object('brand', OLD.brand, 'last4', OLD.last4) END,
    CASE TG_OP WHEN 'INSERT' THEN jsonb_build_object('brand', NEW.brand, 'last4', NEW.last4) END);
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER payment_methods_added AFTER INSERT ON payment_methods
  FOR EACH ROW WHEN (NEW.removed_at IS NULL) EXECUTE FUNCTION audit_method_change();
CREATE OR REPLACE TRIGGER payment_methods_removed AFTER UPDATE ON payment_methods
  FOR EACH ROW WHEN (OLD.removed_at IS NULL AND NEW.removed_at IS NOT NULL) EXECUTE FUNCTION audit_method_change();

-- What a customer decides of automatic top-ups; attempts and waits are no decisions.
CREATE OR REPLACE FUNCTION shown_automatic_topup(entry automatic_topups) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object(
    'enabled', entry.enabled, 'threshold', print_credits(entry.threshold), 'amount', print_credits(entry.amount),
    'monthly_maximum', print_credits(entry.monthly_maximum), 'off_reason', entry.off_reason)
$$;
CREATE OR REPLACE FUNCTION audit_automatic_topup_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM record_act(
    'automatic_topup.set', NEW.account_id, NEW.account_id,
    CASE TG_OP WHEN 'UPDATE' THEN shown_automatic_topup(OLD) END, shown_automatic_topup(NEW));
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER automatic_topups_audited AFTER INSERT OR UPDATE ON automatic_topups
  FOR EACH ROW EXECUTE FUNCTION audit_automatic_topup_change();

CREATE OR REPLACE TRIGGER receipts_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON receipts
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_booked_change();

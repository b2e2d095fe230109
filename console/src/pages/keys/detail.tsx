/** One key: its limits, and the form that changes it. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { OperationPath } from '../../../../schemas/routes.ts'
import { request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Drawer } from '../../ui/dialog.tsx'
import { useFields } from '../../ui/fields.ts'
import { AmountField, CheckField, Field, PageForm } from '../../ui/form.tsx'
import { Fact, Panel, QueryState } from '../../ui/states.tsx'
import { Code, Id, TextLink, Time } from '../../ui/text.tsx'
import { Budgets } from '../budgets/budgets.tsx'
import { ExpiresField, ModelsField } from '../token-fields.tsx'
import { LimitFacts, LimitFields } from './limits.tsx'
import { Rotation } from './rotation.tsx'
import { CapBar, type Created, KeyStatus } from './status.tsx'
import { findChanges, type Key, toValues } from './values.ts'

interface KeyDrawerProps {
  /** Undefined while the drawer is closed. */
  readonly id: string | undefined
  readonly mayChange: boolean
  onRotated(key: Created): void
  onClose(): void
}

export function KeyDrawer({ id, mayChange, onRotated, onClose }: KeyDrawerProps) {
  const key = useGet('showKey', { id: id! }, { enabled: id !== undefined })
  return (
    <Drawer title={key.data?.name ?? t('Key')} isOpen={id !== undefined} onClose={onClose}>
      <QueryState query={key} />
      {key.data && (
        <KeyDetail key={key.data.id} item={key.data} mayChange={mayChange} onRotated={onRotated} />
      )}
    </Drawer>
  )
}

interface KeyDetailProps extends Pick<KeyDrawerProps, 'mayChange' | 'onRotated'> {
  readonly item: Key
}

function KeyDetail({ item, mayChange, onRotated }: KeyDetailProps) {
  const { id, account_id, key_prefix, agent_id, member_id, spend_cap, spent, allowed_models: models } = item
  return (
    <>
      <div className="flex flex-wrap items-center gap-3">
        <KeyStatus item={item} />
        <Id id={id} />
      </div>
      <dl className="rounded-lg border border-line bg-surface py-2">
        <Fact name={t('Begins with')} value={<Code>{key_prefix}…</Code>} />
        <Fact name={t('Created')} value={<Time at={item.created_at} />} />
        <Fact name={t('Expires')} value={<Time at={item.expires_at} none={t('Never')} />} />
        {spend_cap !== null && (
          <Fact name={t('Spent of cap')} value={<CapBar spent={spent ?? '0'} cap={spend_cap} />} />
        )}
        {member_id !== null && <Fact name={t('Member')} value={<Id id={member_id} />} />}
        {agent_id !== null && <Fact name={t('Agent')} value={<Id id={agent_id} />} />}
        <Fact
          name={t('Models')}
          value={models?.length === 0 ? t('None') : (models?.join(', ') ?? t('All'))}
        />
        <LimitFacts {...item} />
      </dl>
      <p className="text-sm">
        <TextLink to="/calls" search={{ account: account_id, key_id: id }}>
          {t('Calls of this key')}
        </TextLink>
      </p>
      {item.revoked_at === null && (
        <Budgets title={t('Budgets')} subject={{ account_id, key_id: id }} mayChange={mayChange} />
      )}
      {mayChange && item.revoked_at === null && (
        <>
          <Rotation item={item} onRotated={onRotated} />
          <EditKey item={item} />
        </>
      )}
    </>
  )
}

function EditKey({ item }: { readonly item: Key }) {
  const { id, spend_cap } = item
  const form = useFields(`key ${id}`, () => toValues(item))
  const { saved, values, field, check, set } = form
  const queries = useQueryClient()
  const save = useMutation({
    meta: { done: t('Key changed'), changes: ['/keys'] },
    mutationFn: () => request('updateKey', { id, ...findChanges(saved, values) }),
    onSuccess: (changed) => {
      queries.setQueryData(['/keys/{id}' satisfies OperationPath, { id }], changed)
    },
  })
  return (
    <Panel title={t('Edit')}>
      <PageForm sends={save} fields={form} submit={t('Save')} kind="primary" isAtEnd>
        <Field label={t('Name')} required maxLength={100} {...field('name')} />
        <ModelsField value={values.allowed_models} onChoose={(allowed_models) => set({ allowed_models })} />
        <ExpiresField {...field('expires_at')} />
        {spend_cap !== null && <AmountField label={t('Spend cap')} {...field('spend_cap')} />}
        <LimitFields field={field} />
        <CheckField label={t('May read the logs of the whole account')} {...check('account_logs')} />
      </PageForm>
    </Panel>
  )
}

/** One key: what it may do, and the change of it. */

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { OperationPath } from '../../../../schemas/routes.ts'
import { request } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Drawer } from '../../ui/dialog.tsx'
import { Actions, CheckField, Field, Form } from '../../ui/form.tsx'
import { Fact, FormError, Panel, QueryState } from '../../ui/states.tsx'
import { Id, Time } from '../../ui/text.tsx'
import { Budgets } from '../budgets/budgets.tsx'
import { ExpiresField } from '../expires-field.tsx'
import { LimitFacts, LimitFields } from './limits.tsx'
import { isRotating, Rotation } from './rotation.tsx'
import { CapBar, type Created, KeyState } from './state.tsx'
import { changesOf, type Key, keyTextsOf } from './texts.ts'

/** While a former secret works, its use changes what there is to do. */
const ROTATING_REFRESH_MS = 5_000

interface KeyDrawerProps {
  /** Undefined: closed. */
  readonly id: string | undefined
  readonly mayChange: boolean
  onRotated(key: Created): void
  onClose(): void
}

export function KeyDrawer({ id, mayChange, onRotated, onClose }: KeyDrawerProps) {
  const key = useGet(
    'showKey',
    { id: id! },
    {
      enabled: id !== undefined,
      refetchInterval: ({ state }) => isRotating(state.data?.former_secret) && ROTATING_REFRESH_MS,
    },
  )
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
  const { id, account_id, key_prefix, agent_id, member_id, spend_cap, spent, expires_at } = item
  return (
    <>
      <div className="flex flex-wrap items-center gap-3">
        <KeyState item={item} />
        <Id id={id} />
      </div>
      <dl className="rounded-lg border border-line bg-surface py-2">
        <Fact name={t('Begins with')} value={<code className="font-mono text-xs">{key_prefix}…</code>} />
        <Fact name={t('Created')} value={<Time at={item.created_at} />} />
        <Fact name={t('Expires')} value={expires_at === null ? t('Never') : <Time at={expires_at} />} />
        {spend_cap !== null && (
          <Fact name={t('Spent of cap')} value={<CapBar spent={spent ?? '0'} cap={spend_cap} />} />
        )}
        {member_id !== null && <Fact name={t('Member')} value={<Id id={member_id} />} />}
        {agent_id !== null && <Fact name={t('Agent')} value={<Id id={agent_id} />} />}
        <Fact
          name={t('Models')}
          value={
            item.allowed_models?.length === 0 ? t('None') : (item.allowed_models?.join(', ') ?? t('All'))
          }
        />
        <LimitFacts item={item} />
      </dl>
      <p className="text-sm">
        <Link
          to="/calls"
          search={{ account: account_id, key_id: id }}
          className="text-accent hover:underline"
        >
          {t('Calls of this key')}
        </Link>
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
  const [shown, setShown] = useState(() => keyTextsOf(item))
  const [texts, setTexts] = useState(shown)
  const queries = useQueryClient()
  const save = useMutation({
    meta: { done: t('Key changed'), changes: ['/keys'] },
    mutationFn: () => request('updateKey', { id, ...changesOf(shown, texts) }),
    onSuccess: (changed) => {
      setShown(keyTextsOf(changed))
      setTexts(keyTextsOf(changed))
      queries.setQueryData(['/keys/{id}' satisfies OperationPath, { id }], changed)
    },
  })
  const field = (name: 'name' | 'models' | 'expires' | 'cap') => ({
    value: texts[name],
    onText: (text: string) => setTexts({ ...texts, [name]: text }),
  })
  return (
    <Panel title={t('Edit')}>
      <Form onSubmit={() => save.mutate()} className="flex flex-col gap-3 p-4">
        <Field label={t('Name')} required maxLength={100} {...field('name')} />
        <Field
          label={t('Models')}
          hint={t('Ids with commas between. Empty: every model; "none": no model.')}
          {...field('models')}
        />
        <ExpiresField {...field('expires')} />
        {spend_cap !== null && (
          <Field label={t('Spend cap')} inputMode="decimal" required {...field('cap')} />
        )}
        <LimitFields texts={texts} onChange={(limits) => setTexts({ ...texts, ...limits })} />
        <CheckField
          label={t('May read the logs of the whole account')}
          checked={texts.accountLogs}
          onCheck={(accountLogs) => setTexts({ ...texts, accountLogs })}
        />
        <FormError error={save.error} />
        <Actions>
          <Button type="submit" kind="primary" isBusy={save.isPending}>
            {t('Save')}
          </Button>
        </Actions>
      </Form>
    </Panel>
  )
}

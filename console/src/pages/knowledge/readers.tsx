/** Who may read a knowledge base besides its account: agents, members, other accounts. */

import { useMutation } from '@tanstack/react-query'
import { BASES } from '../../api/bases.ts'
import { type AnswerOf, request } from '../../api/client.ts'
import { useGet, useWholeList } from '../../api/read.ts'
import { useAccount, useSession } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { useFields } from '../../ui/fields.ts'
import { Field, PageForm, SelectField } from '../../ui/form.tsx'
import { FormError, Panel } from '../../ui/states.tsx'
import { Id } from '../../ui/text.tsx'

export type Base = AnswerOf<'listBases'>['data'][number]

const ANOTHER = 'another'

/** Returns the names of the possible readers, by id. */
function useCandidates(): ReadonlyMap<string, string> {
  const { account_id: id, kind } = useAccount()
  const { accounts } = useSession()
  const enabled = kind === 'organization'
  const agents = useGet('listAgents', { account_id: id }, { enabled })
  const members = useWholeList('listMembers', { account_id: id }, { enabled })
  return new Map([
    ...accounts
      .filter(({ account_id, role }) => account_id !== id && (role === 'owner' || role === 'admin'))
      .map(({ account_id, name }): [string, string] => [account_id, name]),
    ...(members.data ?? []).map(({ account_id, name, email }): [string, string] => [
      account_id,
      email ?? name,
    ]),
    ...(agents.data?.data ?? []).map(({ id, file }): [string, string] => [
      id,
      t('Agent {name}', { name: file.name }),
    ]),
  ])
}

export function Readers({ base, mayChange }: { readonly base: Base; readonly mayChange: boolean }) {
  const { user } = useSession()
  const names = useCandidates()
  const form = useFields(`reader of ${base.id}`, { chosen: '', typed: '' })
  const { chosen, typed } = form.values
  const grant = useMutation({
    meta: { done: t('Access granted'), changes: [BASES] },
    mutationFn: () =>
      request('grantBase', { id: base.id, reader_id: chosen === ANOTHER ? typed.trim() : chosen }),
  })
  const revoke = useMutation({
    meta: { done: t('Access revoked'), changes: [BASES] },
    mutationFn: (reader_id: string) => request('revokeBase', { id: base.id, reader_id }),
  })
  const isOperator = user.installation_role === 'operator'
  const others = [...names].filter(([id]) => !base.readers.includes(id))
  return (
    <Panel title={t('Readers')}>
      {base.readers.length === 0 && (
        <p className="px-4 py-3 text-quiet">{t('Only the keys of this account can read it.')}</p>
      )}
      <ul className="divide-y divide-line">
        {base.readers.map((id) => (
          <li key={id} className="flex flex-wrap items-center gap-3 px-4 py-2">
            <span className="font-medium">{names.get(id) ?? t('Another account')}</span>
            <Id id={id} />
            {mayChange && (
              <Button
                className="ml-auto"
                aria-label={t('Revoke {name}', { name: names.get(id) ?? id })}
                isBusy={revoke.isPending && revoke.variables === id}
                onClick={() => revoke.mutate(id)}
              >
                {t('Revoke')}
              </Button>
            )}
          </li>
        ))}
      </ul>
      {mayChange && (others.length > 0 || isOperator) && (
        <PageForm
          sends={grant}
          fields={{ ...form, keep: form.restart }}
          submit={t('Grant')}
          className="grid items-end gap-3 border-line border-t p-4 sm:grid-cols-2"
        >
          <SelectField
            label={t('Grant to')}
            required
            {...form.field('chosen')}
            options={[
              ['', t('Choose')],
              ...others,
              ...(isOperator ? [[ANOTHER, t('Another account')] as const] : []),
            ]}
          />
          {chosen === ANOTHER && <Field label={t('Account or agent id')} required {...form.field('typed')} />}
        </PageForm>
      )}
      <div className="px-4 pb-4 empty:hidden">
        <FormError error={revoke.error} />
      </div>
    </Panel>
  )
}

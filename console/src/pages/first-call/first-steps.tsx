/** What to do on an account without calls: create a key, make a call, see it. */
import { useState } from 'react'
import { type AnswerOf, request } from '../../api/client.ts'
import { useKeyNames } from '../../api/key-names.ts'
import { useAccount } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { Action } from '../../ui/dialog.tsx'
import { Panel } from '../../ui/states.tsx'
import { CodeBlock } from '../../ui/text.tsx'
import { Arrival, FirstCall } from './first-call.tsx'

type Secret = AnswerOf<'createKey'>

export function FirstSteps({ accountId }: { readonly accountId: string }) {
  const { role } = useAccount()
  const mayCreate = role === 'owner' || role === 'admin'
  const [secret, setSecret] = useState<Secret | null>(null)
  const keys = useKeyNames()
  const known = keys.data?.keys.find(
    ({ revealable, enabled, revoked_at }) => revealable && enabled && !revoked_at,
  )
  return (
    <Panel title={t('Three steps to your first call')}>
      <ol className="flex list-decimal flex-col gap-4 px-4 py-4 pl-9">
        <li>
          <p className="mb-2">{t('Create a key.')}</p>
          {secret && <CodeBlock isWrapped label={secret.name} code={secret.key} />}
          {mayCreate && secret === null && (
            <div className="flex flex-wrap gap-2">
              <Action
                kind={known ? 'plain' : 'primary'}
                changes={['/keys']}
                run={(idempotencyKey) =>
                  request('createKey', { account_id: accountId, name: t('First key') }, { idempotencyKey })
                }
                onDone={setSecret}
              >
                {t('Create a key')}
              </Action>
              {known && (
                <Action kind="primary" run={() => request('revealKey', { id: known.id })} onDone={setSecret}>
                  {t('Use {name}', { name: known.name })}
                </Action>
              )}
            </div>
          )}
        </li>
        <li>
          <p className="mb-2">{t('Make a call.')}</p>
          {secret === null && mayCreate ? (
            <p className="text-quiet">{t('The commands appear here as soon as there is a key.')}</p>
          ) : (
            <FirstCall
              accountId={accountId}
              isAwaited={false}
              {...(secret && { secret: { ...secret, models: secret.allowed_models } })}
            />
          )}
        </li>
        <li>
          <p className="mb-2">{t('See it here, with what it cost.')}</p>
          <Arrival accountId={accountId} />
        </li>
      </ol>
    </Panel>
  )
}

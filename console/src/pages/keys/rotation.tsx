/** The secrets of one key: a new one is made, and the former one works on for a time. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmButton } from '../../ui/dialog.tsx'
import { Actions, Form, SelectField } from '../../ui/form.tsx'
import { Fact, FormError, Panel } from '../../ui/states.tsx'
import { Time } from '../../ui/text.tsx'
import type { Created } from './state.tsx'
import type { Key } from './texts.ts'

type FormerSecret = NonNullable<Key['former_secret']>

interface RotationProps {
  readonly item: Key
  onRotated(key: Created): void
}

const HOUR_SECONDS = 3600
const DEFAULT_GRACE_SECONDS = 24 * HOUR_SECONDS

const graces = (): ReadonlyArray<readonly [seconds: number, name: string]> => [
  [0, t('not at all')],
  [HOUR_SECONDS, t('1 hour')],
  [DEFAULT_GRACE_SECONDS, t('24 hours')],
  [3 * DEFAULT_GRACE_SECONDS, t('3 days')],
  [7 * DEFAULT_GRACE_SECONDS, t('7 days')],
]

/** Returns whether a former secret still works. */
export const isRotating = (former: FormerSecret | null | undefined): boolean =>
  former !== null && former !== undefined && Date.parse(former.ends_at) > Date.now()

export function Rotation({ item, onRotated }: RotationProps) {
  const { id, former_secret: former } = item
  const [grace, setGrace] = useState(DEFAULT_GRACE_SECONDS)
  const [attempt, setAttempt] = useState(() => crypto.randomUUID())
  const changes = ['/keys'] as const
  const rotate = useMutation({
    meta: { changes },
    mutationFn: () => request('rotateKey', { id, grace_seconds: grace }, { idempotencyKey: attempt }),
    onSuccess: (key) => {
      setAttempt(crypto.randomUUID())
      onRotated(key)
    },
  })
  const isWorking = isRotating(former)
  const isInUse = isWorking && former?.successor_used_at !== null
  return (
    <Panel title={t('Secret')}>
      {former && <FormerFacts former={former} isWorking={isWorking} />}
      {former && isWorking && (
        <div className="px-4 pb-4">
          <ConfirmButton
            kind="danger"
            label={t('End the former secret now')}
            title={t('End the former secret of {name}', { name: item.name })}
            description={t(
              'Programs that still use {prefix}… are refused from now on. This cannot be undone.',
              { prefix: former.key_prefix },
            )}
            name={item.name}
            act={t('End')}
            meta={{ done: t('The former secret has ended'), changes }}
            onConfirm={() => request('endFormerSecret', { id })}
          />
        </div>
      )}
      {isInUse ? (
        <p className="border-line border-t p-4 text-quiet text-sm">
          {t('The key can be rotated again when its former secret has ended.')}
        </p>
      ) : (
        <Form
          onSubmit={() => rotate.mutate()}
          className={`flex flex-col gap-3 p-4 ${former ? 'border-line border-t' : ''}`}
        >
          <p className="text-quiet text-sm">
            {isWorking
              ? t('The present secret was not used yet: rotating replaces it, and the former one works on.')
              : t(
                  'Programs get a new secret one after the other, and none is refused meanwhile: the present secret works on.',
                )}
          </p>
          <SelectField
            label={t('The former secret works on after the first use of the new one')}
            hint={t('At most 30 days from now, where the new one is never used.')}
            value={grace}
            onText={(text) => setGrace(Number(text))}
            options={graces()}
          />
          <FormError error={rotate.error} />
          <Actions>
            <Button type="submit" isBusy={rotate.isPending}>
              {t('Rotate')}
            </Button>
          </Actions>
        </Form>
      )}
    </Panel>
  )
}

function FormerFacts({ former, isWorking }: { readonly former: FormerSecret; readonly isWorking: boolean }) {
  const { key_prefix, replaced_at, successor_used_at, last_used_at, ends_at } = former
  return (
    <dl className="py-2">
      <Fact name={t('Former secret')} value={<code className="font-mono text-xs">{key_prefix}…</code>} />
      <Fact
        name={isWorking ? t('Works until') : t('Ended')}
        value={
          <>
            <Time at={ends_at} />
            {isWorking && successor_used_at === null && (
              <span className="text-quiet"> {t('at the latest: the new one was not used yet')}</span>
            )}
          </>
        }
      />
      <Fact name={t('Rotated')} value={<Time at={replaced_at} />} />
      <Fact
        name={t('New one first used')}
        value={successor_used_at === null ? t('Not yet') : <Time at={successor_used_at} />}
      />
      <Fact
        name={t('Former one last used')}
        value={last_used_at === null ? t('Not since the rotation') : <Time at={last_used_at} />}
      />
    </dl>
  )
}

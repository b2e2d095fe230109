/** Rotates the secret of one key: a new one is made, and the old one works for a while. */

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { readTyped } from '../../../../src/core/confirmation.ts'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Action } from '../../ui/dialog.tsx'
import { PageForm, SelectField } from '../../ui/form.tsx'
import { Fact, Panel } from '../../ui/states.tsx'
import { Code, Time } from '../../ui/text.tsx'
import type { Created } from './status.tsx'
import type { Key } from './values.ts'

type FormerSecret = NonNullable<Key['former_secret']>

const HOUR_SECONDS = 3600
const DEFAULT_GRACE_SECONDS = 24 * HOUR_SECONDS

/** Returns whether an old secret still works. */
const isRotating = (former: FormerSecret | null | undefined): boolean =>
  former != null && Date.parse(former.ends_at) > Date.now()

interface RotationProps {
  readonly item: Key
  onRotated(key: Created): void
}

export function Rotation({ item, onRotated }: RotationProps) {
  const { id, name, former_secret: former } = item
  const isWorking = isRotating(former)
  const isInUse = isWorking && former?.successor_used_at !== null
  return (
    <Panel title={t('Secret')}>
      {former && <FormerFacts former={former} isWorking={isWorking} />}
      {former && isWorking && (
        <div className="px-4 pb-4">
          <Action
            kind="danger"
            confirm={{
              title: t('End the old secret of {name}', { name }),
              description: t('Programs that still use {prefix}… will be refused. This cannot be undone.', {
                prefix: former.key_prefix,
              }),
              name: readTyped('endFormerSecret', { name }),
              submit: t('End'),
            }}
            done={t('The old secret no longer works')}
            changes={['/keys']}
            run={() => request('endFormerSecret', { id })}
          >
            {t('End the old secret now')}
          </Action>
        </div>
      )}
      <div className={former ? 'border-line border-t' : ''}>
        {isInUse ? (
          <p className="p-4 text-quiet text-sm">
            {t('You can rotate the key again when its old secret no longer works.')}
          </p>
        ) : (
          <RotationForm id={id} isWorking={isWorking} onRotated={onRotated} />
        )}
      </div>
    </Panel>
  )
}

interface RotationFormProps extends Pick<RotationProps, 'onRotated'> {
  readonly id: string
  readonly isWorking: boolean
}

function RotationForm({ id, isWorking, onRotated }: RotationFormProps) {
  const [grace, setGrace] = useState(DEFAULT_GRACE_SECONDS)
  const [idempotencyKey, setIdempotencyKey] = useState(() => crypto.randomUUID())
  const rotate = useMutation({
    meta: { changes: ['/keys'] },
    mutationFn: () => request('rotateKey', { id, grace_seconds: grace }, { idempotencyKey }),
    onSuccess: (key) => {
      setIdempotencyKey(crypto.randomUUID())
      onRotated(key)
    },
  })
  return (
    <PageForm sends={rotate} submit={t('Rotate')} isAtEnd>
      <p className="text-quiet text-sm">
        {isWorking
          ? t(
              'The current secret has not been used yet. Rotating replaces it, and the old one keeps working.',
            )
          : t('Update your programs one at a time: the current secret keeps working, so no call is refused.')}
      </p>
      <SelectField
        label={t('Keep the old secret after the new one is first used')}
        hint={t('If the new one is never used, the old one ends after 30 days.')}
        value={grace}
        onText={(text) => setGrace(Number(text))}
        options={[
          [0, t('not at all')],
          [HOUR_SECONDS, t('1 hour')],
          [DEFAULT_GRACE_SECONDS, t('24 hours')],
          [3 * DEFAULT_GRACE_SECONDS, t('3 days')],
          [7 * DEFAULT_GRACE_SECONDS, t('7 days')],
        ]}
      />
    </PageForm>
  )
}

function FormerFacts({ former, isWorking }: { readonly former: FormerSecret; readonly isWorking: boolean }) {
  const { key_prefix, replaced_at, successor_used_at, last_used_at, ends_at } = former
  return (
    <dl className="py-2">
      <Fact name={t('Old secret')} value={<Code>{key_prefix}…</Code>} />
      <Fact
        name={isWorking ? t('Works until') : t('Ended')}
        value={
          <>
            <Time at={ends_at} />
            {isWorking && successor_used_at === null && (
              <span className="text-quiet">
                {' '}
                {t('at the latest, because the new one has not been used yet')}
              </span>
            )}
          </>
        }
      />
      <Fact name={t('Rotated')} value={<Time at={replaced_at} />} />
      <Fact name={t('New secret first used')} value={<Time at={successor_used_at} none={t('Not yet')} />} />
      <Fact
        name={t('Old secret last used')}
        value={<Time at={last_used_at} none={t('Not since the rotation')} />}
      />
    </dl>
  )
}

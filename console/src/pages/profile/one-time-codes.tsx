/** One-time codes as a second factor: set them up, get recovery codes, remove them. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { encode } from 'uqr'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Action, Dialog } from '../../ui/dialog.tsx'
import { DialogForm, Done, Field } from '../../ui/form.tsx'
import { Badge, FormError } from '../../ui/states.tsx'
import { CodeBlock } from '../../ui/text.tsx'
import { SECURITY, Section, type Security } from './section.tsx'

const GROUPS_OF_FOUR = /.{4}(?=.)/g

interface QrCodeProps {
  readonly text: string
  /** Read by screen readers. */
  readonly label: string
}

/** Draws a QR code, dark on light in both themes: many scanners need it. */
function QrCode({ text, label }: QrCodeProps) {
  const { data, size } = encode(text, { border: 2 })
  const squares = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : [])))
  return (
    <svg role="img" aria-label={label} viewBox={`0 0 ${size} ${size}`} className="size-44 rounded-md">
      <rect width={size} height={size} fill="#fff" />
      <path d={squares.join('')} fill="#000" shapeRendering="crispEdges" />
    </svg>
  )
}

/** Shows the secret for the authenticator app, and asks for the first code to confirm it. */
function Enrolment({
  secret,
  uri,
  onConfirmed,
  onClose,
}: {
  readonly secret: string
  readonly uri: string
  onConfirmed(codes: readonly string[]): void
  onClose(): void
}) {
  const [code, setCode] = useState('')
  const confirm = useMutation({
    meta: { changes: [SECURITY, '/me/sessions'] },
    mutationFn: () => request('confirmTotp', { code }),
    onSuccess: ({ recovery_codes }) => onConfirmed(recovery_codes),
  })
  return (
    <Dialog
      title={t('Set up one-time codes')}
      description={t(
        'Scan the code with your authenticator app, or type the secret into it. Then type the code that it shows.',
      )}
      onClose={onClose}
    >
      <DialogForm sends={confirm} submit={t('Confirm')}>
        <QrCode text={uri} label={t('The secret as a QR code')} />
        <CodeBlock label={t('Secret')} code={secret.replace(GROUPS_OF_FOUR, '$& ')} />
        <a className="text-accent underline" href={uri}>
          {t('Open the app on this device')}
        </a>
        <Field
          label={t('One-time code')}
          name="code"
          inputMode="numeric"
          autoComplete="one-time-code"
          required
          maxLength={10}
          value={code}
          onText={setCode}
        />
      </DialogForm>
    </Dialog>
  )
}

const RecoveryCodes = ({ codes, onClose }: { readonly codes: readonly string[]; onClose(): void }) => (
  <Dialog
    title={t('Recovery codes')}
    description={t('Each replaces a one-time code once. They are not shown again, so keep them safe.')}
    onClose={onClose}
  >
    <CodeBlock label={t('Recovery codes')} code={codes.join('\n')} />
    <Done onClose={onClose} />
  </Dialog>
)

export function OneTimeCodes({ security }: { readonly security: Security }) {
  const [codes, setCodes] = useState<readonly string[] | null>(null)
  const enrol = useMutation({ mutationFn: () => request('enrolTotp', {}) })
  const renew = useMutation({
    meta: { changes: [SECURITY] },
    mutationFn: () => request('renewRecoveryCodes', {}),
    onSuccess: ({ recovery_codes }) => setCodes(recovery_codes),
  })
  const isOn = security.totp_confirmed_at !== null
  return (
    <Section
      title={t('One-time codes')}
      note={t(
        'A code from an authenticator app, in addition to your password. Passkeys and providers do not need one.',
      )}
    >
      <p className="flex flex-wrap items-center gap-2">
        {isOn ? <Badge tone="good">{t('On')}</Badge> : <Badge>{t('Off')}</Badge>}
        {isOn && (
          <span className="text-quiet">
            {t('Recovery codes left: {count}', { count: security.recovery_codes })}
          </span>
        )}
      </p>
      <FormError error={enrol.error ?? renew.error} />
      <div className="flex flex-wrap gap-2">
        {isOn ? (
          <>
            <Button isBusy={renew.isPending} onClick={() => renew.mutate()}>
              {t('New recovery codes')}
            </Button>
            <Action
              confirm={{
                title: t('Switch off one-time codes'),
                effects: [t('From then on, only your password protects your sign-in.')],
                submit: t('Switch off'),
              }}
              done={t('One-time codes switched off')}
              changes={[SECURITY]}
              run={() => request('removeTotp', {})}
            >
              {t('Switch off')}
            </Action>
          </>
        ) : (
          <Button isBusy={enrol.isPending} onClick={() => enrol.mutate()}>
            {t('Set up one-time codes')}
          </Button>
        )}
      </div>
      {enrol.data && codes === null && !isOn && (
        <Enrolment
          {...enrol.data}
          onClose={enrol.reset}
          onConfirmed={(made) => {
            setCodes(made)
            enrol.reset()
          }}
        />
      )}
      {codes && <RecoveryCodes codes={codes} onClose={() => setCodes(null)} />}
    </Section>
  )
}

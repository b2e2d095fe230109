/** The user's passkeys: add, rename, remove. */

import { useState } from 'react'
import { readTyped } from '../../../../src/core/confirmation.ts'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Action } from '../../ui/dialog.tsx'
import { NameDialog } from '../../ui/name-dialog.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'
import { makePasskey } from '../sign-in/passkey.ts'
import { SECURITY, Section, type Security } from './section.tsx'

type Passkey = Security['passkeys'][number]

export function Passkeys({ security }: { readonly security: Security }) {
  const [isAdding, setAdding] = useState(false)
  const [renamed, setRenamed] = useState<Passkey | null>(null)
  const naming = {
    hint: t('Such as the device that keeps it.'),
    maxLength: 60,
    submit: t('Save'),
    changes: [SECURITY],
  }
  return (
    <Section
      title={t('Passkeys')}
      note={t(
        'Sign in with your fingerprint, your face, or the PIN of your device. Nothing secret leaves the device.',
      )}
    >
      {security.passkeys.length > 0 && (
        <Table
          caption={t('Passkeys')}
          rows={security.passkeys}
          columns={[
            { name: t('Name'), cell: ({ name }) => <span className="font-medium">{name}</span> },
            { name: t('Created'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
            {
              name: t('Last used'),
              cell: ({ last_used_at }) => <Time at={last_used_at} none={t('Never')} />,
            },
            {
              name: t('Actions'),
              cell: (passkey) => (
                <span className="flex gap-1">
                  <Button kind="quiet" onClick={() => setRenamed(passkey)}>
                    {t('Rename')}
                  </Button>
                  <Action
                    kind="quiet"
                    confirm={{
                      title: t('Remove {name}', { name: passkey.name }),
                      description: t(
                        'You can no longer sign in with it. Remove it from your device as well.',
                      ),
                      name: readTyped('removePasskey', passkey),
                      submit: t('Remove'),
                    }}
                    done={t('Passkey removed')}
                    changes={[SECURITY]}
                    run={() => request('removePasskey', { id: passkey.id })}
                  >
                    {t('Remove')}
                  </Action>
                </span>
              ),
            },
          ]}
        />
      )}
      <div>
        <Button onClick={() => setAdding(true)}>{t('Add a passkey')}</Button>
      </div>
      {isAdding && (
        <NameDialog
          {...naming}
          title={t('Add a passkey')}
          onName={async (name) => {
            await makePasskey(name)
            setAdding(false)
          }}
          onClose={() => setAdding(false)}
        />
      )}
      {renamed && (
        <NameDialog
          {...naming}
          title={t('Rename {name}', { name: renamed.name })}
          former={renamed.name}
          onName={async (name) => {
            await request('renamePasskey', { id: renamed.id, name })
            setRenamed(null)
          }}
          onClose={() => setRenamed(null)}
        />
      )}
    </Section>
  )
}

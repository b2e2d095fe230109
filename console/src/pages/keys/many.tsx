/** What is done with several keys. */
import { printCsvRecord } from '../../../../src/core/call-log/csv-records.ts'
import { readTyped } from '../../../../src/core/confirmation.ts'
import { request } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { ManyAction } from '../../ui/selection.tsx'
import { saveCsv } from '../save-csv.ts'
import type { Key } from './values.ts'

const CSV_COLUMNS = [
  'id',
  'name',
  'key_prefix',
  'enabled',
  'revoked_at',
  'expires_at',
  'spent_credits',
  'spend_cap_credits',
  'allowed_models',
  'created_at',
]

const toRecord = (key: Key) => [
  key.id,
  key.name,
  key.key_prefix,
  String(key.enabled),
  key.revoked_at,
  key.expires_at,
  key.spent,
  key.spend_cap,
  key.allowed_models === null ? null : key.allowed_models.join('|'),
  key.created_at,
]

const readName = ({ name }: Key): string => name

/** Returns the name of one key, or the number of several: a question asks for it. */
const nameKeys = (keys: readonly Key[]): string =>
  keys.length === 1 ? readName(keys[0]!) : t('{count} keys', { count: keys.length })

interface ManyKeysProps {
  readonly rows: readonly Key[]
  readonly mayChange: boolean
  onDone(): void
}

export function ManyKeys({ rows, mayChange, onDone }: ManyKeysProps) {
  const kept = rows.filter(({ revoked_at }) => revoked_at === null)
  const on = kept.filter(({ enabled }) => enabled)
  const common = { name: readName, changes: ['/keys'], onDone } as const
  return (
    <>
      {mayChange && (
        <>
          <ManyAction
            {...common}
            rows={on}
            confirm={{
              title: t('Switch off {name}', { name: nameKeys(on) }),
              description: t('Programs that use these keys will be refused until you switch them on again.'),
              submit: t('Switch off'),
            }}
            done={t('Keys switched off')}
            run={({ id }) => request('updateKey', { id, enabled: false })}
          >
            {t('Switch off')}
          </ManyAction>
          <ManyAction
            {...common}
            rows={kept.filter(({ enabled }) => !enabled)}
            done={t('Keys switched on')}
            run={({ id }) => request('updateKey', { id, enabled: true })}
          >
            {t('Switch on')}
          </ManyAction>
          <ManyAction
            {...common}
            rows={kept}
            kind="danger"
            confirm={{
              title: t('Revoke {name}', { name: nameKeys(kept) }),
              description: t('Programs that use these keys will be refused. This cannot be undone.'),
              name: readTyped('revokeKey', { name: nameKeys(kept) }),
              submit: t('Revoke'),
            }}
            done={t('Keys revoked')}
            run={({ id }) => request('revokeKey', { id })}
          >
            {t('Revoke')}
          </ManyAction>
        </>
      )}
      <Button
        onClick={() => saveCsv('keys', [[CSV_COLUMNS, ...rows.map(toRecord)].map(printCsvRecord).join('')])}
      >
        CSV
      </Button>
    </>
  )
}

/** The monthly partitions of the growing tables, and what retention has removed. */

import type { AnswerOf } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { printNumber } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Badge, Panel, QueryState } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Code, Time } from '../../ui/text.tsx'

type Partition = AnswerOf<'listPartitions'>['data'][number]

const MIB = 1024 * 1024

export function Partitions() {
  const list = useGet('listPartitions', {})
  const states: Readonly<Record<Partition['state'], string>> = {
    attached: t('In use'),
    detached: t('Detached'),
    dropped: t('Dropped'),
  }
  const columns: Column<Partition>[] = [
    { name: t('Partition'), cell: ({ name }) => <Code>{name}</Code> },
    {
      name: t('Status'),
      cell: ({ state }) => <Badge tone={state === 'attached' ? 'good' : 'neutral'}>{states[state]}</Badge>,
    },
    { name: t('From'), isTime: true, cell: ({ from }) => (from === null ? '–' : <Time at={from} />) },
    { name: t('To'), isTime: true, cell: ({ to }) => <Time at={to} /> },
    { name: t('Rows'), isNumber: true, cell: ({ rows }) => printNumber(rows) },
    { name: t('MiB'), isNumber: true, cell: ({ bytes }) => printNumber(Math.ceil(bytes / MIB)) },
  ]
  return (
    <Panel title={t('Months in PostgreSQL')}>
      <QueryState query={list} />
      {list.isSuccess && (
        <Table
          caption={t('Months in PostgreSQL')}
          columns={columns}
          rows={list.data.data}
          toKey={({ name }) => name}
        />
      )}
    </Panel>
  )
}

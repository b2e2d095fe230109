/** The months of the tables that grow for ever, and what retention has taken away. */
import type { AnswerOf } from '../../api/client.ts'
import { useGet } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { Badge, Panel, QueryState } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'

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
    { name: t('Partition'), cell: ({ name }) => <code className="font-mono text-xs">{name}</code> },
    {
      name: t('State'),
      cell: ({ state }) => <Badge tone={state === 'attached' ? 'good' : 'neutral'}>{states[state]}</Badge>,
    },
    { name: t('From'), cell: ({ from }) => (from === null ? '–' : <Time at={from} />) },
    { name: t('To'), cell: ({ to }) => <Time at={to} /> },
    { name: t('Rows'), isNumber: true, cell: ({ rows }) => rows.toLocaleString('en') },
    { name: t('MiB'), isNumber: true, cell: ({ bytes }) => Math.ceil(bytes / MIB).toLocaleString('en') },
  ]
  return (
    <Panel title={t('Months in PostgreSQL')}>
      <QueryState query={list} />
      {list.isSuccess && (
        <Table
          caption={t('Months in PostgreSQL')}
          columns={columns}
          rows={list.data.data}
          keyOf={({ name }) => name}
        />
      )}
    </Panel>
  )
}

/** A call in full beside the list, with the way to its neighbors. */
import { useGet } from '../../api/read.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Drawer } from '../../ui/dialog.tsx'
import { NONE } from '../../ui/text.tsx'
import { CallDetail } from './detail.tsx'
import { describeStatuses, type ShownCall } from './query.ts'

interface CallDrawerProps {
  /** Of the call. Undefined while none is open. */
  readonly accountId: string | undefined
  /** True if the list has the calls of all accounts. */
  readonly isWhole: boolean
  readonly id: string | undefined
  /** Its row; undefined for a call that is not in the list. */
  readonly row: ShownCall | undefined
  /** Null for a call that is not in the list. */
  readonly neighbors: { readonly hasNext: boolean; readonly hasPrevious: boolean } | null
  onStep(by: 1 | -1): void
}

export function CallDrawer({ accountId, isWhole, id, row, neighbors, onStep }: CallDrawerProps) {
  const change = useChangeSearch()
  const isOpen = id !== undefined && accountId !== undefined
  const { data } = useGet('showCall', { id: Number(id), account_id: accountId ?? '' }, { enabled: isOpen })
  const call = row ?? data?.call
  const title =
    call === undefined
      ? t('Call')
      : t('Call · {model} · {status}', {
          model: call.model || NONE,
          status: describeStatuses()[call.status][1],
        })
  return (
    <Drawer
      isBeside
      title={title}
      isOpen={isOpen}
      onClose={() => change({ call: undefined, call_account: undefined })}
    >
      {neighbors !== null && (
        <div className="flex gap-2">
          <Button aria-keyshortcuts="k" disabled={!neighbors.hasPrevious} onClick={() => onStep(-1)}>
            {t('Previous')} <kbd className="ml-1 text-quiet text-xs">k</kbd>
          </Button>
          <Button aria-keyshortcuts="j" disabled={!neighbors.hasNext} onClick={() => onStep(1)}>
            {t('Next')} <kbd className="ml-1 text-quiet text-xs">j</kbd>
          </Button>
        </div>
      )}
      {isOpen && (
        <CallDetail
          key={id}
          accountId={accountId}
          account={isWhole ? { id: accountId, name: row?.account_name ?? accountId } : undefined}
          id={id}
        />
      )}
    </Drawer>
  )
}

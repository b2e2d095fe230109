/** Uploads a zip, files or a folder into a knowledge base. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { MAX_UPLOAD_BYTES } from '../../../../schemas/management/knowledge/imports.ts'
import { isOfBases } from '../../api/bases.ts'
import { upload } from '../../api/client.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { CheckField, DialogForm } from '../../ui/form.tsx'

interface UploadProps {
  readonly baseId: string
  readonly name: string
  onClose(): void
}

/** Returns the path of a file below the chosen folder, or the name of a single file. */
const readPath = ({ webkitRelativePath, name }: File): string =>
  webkitRelativePath === '' ? name : webkitRelativePath.split('/').slice(1).join('/')

const MIB = 1024 * 1024

interface PickerProps {
  readonly label: string
  readonly isFolder: boolean
  onPick(files: readonly File[]): void
}

function Picker({ label, isFolder, onPick }: PickerProps) {
  const id = useId()
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="font-medium text-sm">
        {label}
      </label>
      <input
        id={id}
        type="file"
        multiple
        className="rounded-md border border-edge border-dashed bg-raised p-3 text-sm"
        {...(isFolder && { webkitdirectory: '' })}
        onChange={({ target }) => onPick([...(target.files ?? [])])}
      />
    </div>
  )
}

export function UploadDialog({ baseId, name, onClose }: UploadProps) {
  const { account_id } = useAccount()
  const [files, setFiles] = useState<readonly File[]>([])
  const [isPruned, setPruned] = useState(false)
  const queries = useQueryClient()
  const change = useChangeSearch()
  const start = useMutation({
    meta: { done: t('Upload complete; the import has begun') },
    mutationFn: () =>
      upload(
        'startImport',
        { id: baseId, account_id, prune: String(isPruned) },
        files.map((file) => [readPath(file), file]),
      ),
    onSuccess: async ({ knowledge_base_id: id }) => {
      // The upload may have created the base: the list must have it before it is opened.
      await queries.invalidateQueries({ predicate: isOfBases })
      onClose()
      change({ base: id })
    },
  })
  const bytes = files.reduce((sum, { size }) => sum + size, 0)
  const tooLarge = bytes > MAX_UPLOAD_BYTES
  return (
    <Dialog
      title={t('Upload to {name}', { name })}
      description={t(
        'Every Markdown file becomes a page. If one file is invalid, nothing is imported, and the report names the file.',
      )}
      onClose={onClose}
    >
      <DialogForm
        sends={start}
        submit={start.isPending ? t('Uploading') : t('Upload')}
        isDisabled={files.length === 0 || tooLarge}
      >
        <Picker label={t('A zip, or files')} isFolder={false} onPick={setFiles} />
        <Picker label={t('Or a folder')} isFolder onPick={setFiles} />
        {files.length > 0 && (
          <p className={`tabular text-sm ${tooLarge ? 'text-bad' : 'text-quiet'}`}>
            {t('{files, plural, one {# file} other {# files}}, {size} MiB of at most {most} MiB', {
              files: files.length,
              size: (bytes / MIB).toFixed(1),
              most: MAX_UPLOAD_BYTES / MIB,
            })}
          </p>
        )}
        <CheckField
          label={t('Remove pages whose files are gone')}
          hint={t('Otherwise they are kept, and the report names them.')}
          checked={isPruned}
          onCheck={setPruned}
        />
      </DialogForm>
    </Dialog>
  )
}

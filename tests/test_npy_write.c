/* .npy files: what a writer leaves behind, whatever happens to it. SPDX-License-Identifier: MIT */
#include "npy_cases.h"

/* --- What happens to the target ----------------------------------------------------------------- */

static const char original[] = "the file that was there before";

static void write_original(const char *path) {
    write_file(path, original, sizeof original);
}

static void assert_original(const char *path) {
    assert_file(path, original, sizeof original);
}

static void a_target_is_untouched_until_commit(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    write_original("a.npy");
    posenc_npy_writer *writer = create("a.npy", &info);
    assert_original("a.npy");
    put(writer, POSENC_F64, 0, 10);
    assert_original("a.npy");
    commit(writer);
    assert_array("a.npy", &info);
    assert_names(".", "a.npy ");
}

static void a_discarded_array_leaves_no_file(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    write_original("a.npy");
    for (size_t written = 0; written <= 10; written += 5) {
        posenc_npy_writer *writer = create("a.npy", &info);
        put(writer, POSENC_F64, 0, written);
        posenc_npy_discard(writer);
        writer = create("new.npy", &info);
        put(writer, POSENC_F64, 0, written);
        posenc_npy_discard(writer);
        assert_original("a.npy");
        assert_names(".", "a.npy ");
    }
}

static void an_unfinished_array_is_not_committed_and_leaves_no_file(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    static const char *const targets[] = {"a.npy", "new.npy"};
    write_original("a.npy");
    for (size_t i = 0; i < 2 * COUNT(targets); i++) {
        size_t written = i < 2 ? 0 : 9;
        posenc_npy_writer *writer = create(targets[i % 2], &info);
        posenc_error error;
        put(writer, POSENC_F64, 0, written);
        assert_refused(posenc_npy_commit(writer, &error), &error, POSENC_OUT_OF_RANGE,
                       "elements written");
        assert_string_equal(error.must, "be all that the shape says");
        assert_int_equal(error.value.as.size, written);
        assert_int_equal(error.limit.as.size, 10);
        assert_original("a.npy");
        assert_names(".", "a.npy ");
    }
}

static mode_t mode_of(const char *path) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

/* 0444 too: what may be written is the folder. */
static void an_existing_file_keeps_its_mode(void **state) {
    (void)state;
    static const mode_t modes[] = {0600, 0640, 0664, 0755, 0444};
    posenc_npy_info info = vector_of(POSENC_F32, 3);
    for (size_t i = 0; i < COUNT(modes); i++) {
        unlink("a.npy");
        write_original("a.npy");
        assert_int_equal(chmod("a.npy", modes[i]), 0);
        make_array("a.npy", &info);
        assert_int_equal(mode_of("a.npy"), modes[i]);
    }
}

static void an_existing_file_keeps_its_owner_where_that_is_permitted(void **state) {
    (void)state;
    struct stat status;
    posenc_npy_info info = vector_of(POSENC_F32, 3);
    if (getuid() != 0)
        skip();
    write_original("a.npy");
    assert_int_equal(take_root_back(), 0);
    assert_int_equal(chown("a.npy", 12, 34), 0);
    assert_int_equal(chmod("a.npy", 06755), 0); /* bits that a change of the owner clears */
    make_array("a.npy", &info);
    (void)give_up_root();
    assert_int_equal(stat("a.npy", &status), 0);
    assert_true(status.st_uid == 12 && status.st_gid == 34);
    assert_int_equal(status.st_mode & 07777, 06755);
}

static void a_new_file_gets_the_mode_that_the_umask_leaves(void **state) {
    (void)state;
    static const mode_t masks[] = {022, 027, 077, 0};
    posenc_npy_info info = vector_of(POSENC_F32, 3);
    for (size_t i = 0; i < COUNT(masks); i++) {
        unlink("a.npy");
        mode_t before = umask(masks[i]);
        make_array("a.npy", &info);
        umask(before);
        assert_int_equal(mode_of("a.npy"), 0666 & ~masks[i]);
    }
}

/* Another name of the old file and a reader that has it open keep the old one. */
static void a_file_is_replaced_and_not_overwritten(void **state) {
    (void)state;
    posenc_npy_info old = vector_of(POSENC_F64, 10), new = vector_of(POSENC_F32, 3);
    make_array("a.npy", &old);
    assert_int_equal(link("a.npy", "old.npy"), 0);
    posenc_npy_reader *reader = open_array("a.npy", NULL);
    make_array("a.npy", &new);
    assert_part(reader, POSENC_F64, 0, 10);
    posenc_npy_close(reader);
    assert_array("a.npy", &new);
    assert_array("old.npy", &old);
}

static void the_writer_that_commits_last_wins(void **state) {
    (void)state;
    posenc_npy_info first = vector_of(POSENC_F64, 10), last = vector_of(POSENC_F32, 3);
    posenc_npy_writer *late = create("a.npy", &last), *early = create("a.npy", &first);
    put(early, POSENC_F64, 0, 10);
    put(late, POSENC_F32, 0, 3);
    commit(early);
    assert_array("a.npy", &first);
    commit(late);
    assert_array("a.npy", &last);
    assert_names(".", "a.npy ");
}

/* Links, relative to where they stand: `link` leads to `text`, which is the file `target`. */
static void symbolic_links_are_followed_and_kept(void **state) {
    (void)state;
    static const struct {
        const char *path, *link, *text, *target;
    } known[] = {
        {"link", "link", "real", "real"},
        {"sub/link", "sub/link", "../other/real", "other/real"},
        {"sub/link", "sub/link", "real", "sub/real"},
        {"./sub/../link", "link", "sub/real", "sub/real"},
        {"first", "link", "other/real", "other/real"},    /* through a link to the link */
        {"shortcut/link", "sub/link", "../real", "real"}, /* in a folder that is a link itself */
        {"shortcut/real", "unused", "real", "sub/real"},
    };
    posenc_npy_info info = vector_of(POSENC_F32, 5);
    for (size_t i = 0; i < 2 * COUNT(known); i++) {
        const char *path = known[i / 2].path, *link = known[i / 2].link;
        const char *target = known[i / 2].target;
        struct stat status;
        assert_true(leave_folder(NULL) == 0 && enter_folder(NULL) == 0); /* to an empty one */
        assert_true(mkdir("sub", 0755) == 0 && mkdir("other", 0755) == 0);
        assert_true(symlink("sub", "shortcut") == 0 && symlink("link", "first") == 0);
        assert_int_equal(symlink(known[i / 2].text, link), 0);
        if (i % 2) /* else the link leads nowhere yet */
            write_original(target);
        posenc_npy_writer *writer = create(path, &info);
        put(writer, POSENC_F32, 0, 5);
        if (i % 2)
            assert_original(target);
        else
            assert_int_equal(lstat(target, &status), -1);
        commit(writer);
        assert_true(lstat(link, &status) == 0 && S_ISLNK(status.st_mode));
        assert_true(lstat(target, &status) == 0 && S_ISREG(status.st_mode));
        assert_array(target, &info);
        assert_array(path, &info);
    }
}
static void commit_flushes_the_whole_file_and_its_folder(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 1000);
    posenc_npy_writer *writer = create("a.npy", &info);
    put(writer, POSENC_F64, 0, 1000);
    memset(&flushed, 0, sizeof flushed);
    commit(writer);
    assert_int_equal(flushed.files, 1);
    assert_int_equal(flushed.file_size, 128 + 8000);
    assert_int_equal(flushed.folders, 1);
}

/* --- Where the target is ------------------------------------------------------------------------ */

/* On systems that cannot make files without a name. */
static void a_temporary_file_is_gone_in_the_end(void **state) {
    (void)state;
    enum { DISCARD, COMMIT_TOO_EARLY, COMMIT, ENDS };
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    for (int end = 0; end < ENDS; end++) {
        write_original("a.npy");
        assert_int_equal(chmod("a.npy", 0640), 0);
        proc_is_hidden = 1;
        posenc_npy_writer *writer = create("a.npy", &info);
        proc_is_hidden = 0;
        struct dirent **entries;
        int count = scandir(".", &entries, is_no_dot, alphasort);
        assert_int_equal(count, 2);
        assert_true(entries[0]->d_name[0] == '.'); /* hidden, and not taken for an array */
        for (int i = 0; i < count; i++)
            free(entries[i]);
        free(entries);
        put(writer, POSENC_F64, 0, end == COMMIT_TOO_EARLY ? 9 : 10);
        assert_original("a.npy");
        if (end == DISCARD)
            posenc_npy_discard(writer);
        else
            assert_int_equal(posenc_npy_commit(writer, NULL),
                             end == COMMIT ? POSENC_OK : POSENC_OUT_OF_RANGE);
        assert_names(".", "a.npy ");
        assert_int_equal(mode_of("a.npy"), 0640);
        if (end == COMMIT)
            assert_array("a.npy", &info);
        else
            assert_original("a.npy");
    }
}

/* A relative path means what it meant when the array was begun. */
static void a_change_of_folder_does_not_move_the_target(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    assert_true(mkdir("other", 0755) == 0 && mkdir("sub", 0755) == 0);
    posenc_npy_writer *here = create("a.npy", &info), *below = create("sub/b.npy", &info);
    put(here, POSENC_F64, 0, 10);
    put(below, POSENC_F64, 0, 10);
    assert_int_equal(chdir("other"), 0);
    commit(here);
    commit(below);
    assert_int_equal(chdir(".."), 0);
    assert_array("a.npy", &info);
    assert_array("sub/b.npy", &info);
    assert_names("other", "");
}

/* /dev has devices, but this is a folder as any other. */
static void arrays_may_lie_in_shared_memory(void **state) {
    (void)state;
    char path[sizeof shared_folder + 6];
    posenc_npy_info info = vector_of(POSENC_F64, 10), longer = vector_of(POSENC_F64, 20);
    strcpy(shared_folder, "/dev/shm/posenc-npy-XXXXXX");
    if (!mkdtemp(shared_folder)) {
        shared_folder[0] = '\0';
        skip();
    }
    snprintf(path, sizeof path, "%s/a.npy", shared_folder);
    make_array(path, &longer);
    posenc_npy_writer *writer = create(path, &info);
    assert_array(path, &longer);
    put(writer, POSENC_F64, 0, 10);
    commit(writer);
    assert_array(path, &info);
    assert_names(shared_folder, "a.npy ");
}

/* --- What is no regular file -------------------------------------------------------------------- */

static void assert_write_refused(posenc_npy_writer *writer, uint64_t first, size_t count,
                                 const void *from, posenc_status status, const char *argument) {
    posenc_error error;
    assert_refused(posenc_npy_write(writer, first, count, from, &error), &error, status, argument);
    assert_int_equal(posenc_npy_write(writer, first, count, from, NULL), status);
}

static void a_device_is_written_in_order_and_stays(void **state) {
    (void)state;
    static const float numbers[10] = {0};
    struct stat status;
    posenc_npy_info info = vector_of(POSENC_F32, 10);
    if (geteuid() == 0)
        skip();
    assert_int_equal(symlink("/dev/null", "link"), 0);
    static const char *const paths[] = {"/dev/null", "link"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        posenc_npy_writer *writer = create(paths[i], &info);
        put(writer, POSENC_F32, 0, 4);
        assert_write_refused(writer, 5, 5, numbers, POSENC_OUT_OF_RANGE, "first");
        assert_write_refused(writer, 0, 4, numbers, POSENC_OUT_OF_RANGE, "first");
        put(writer, POSENC_F32, 4, 6);
        commit(writer);
        assert_true(stat("/dev/null", &status) == 0 && S_ISCHR(status.st_mode));
        assert_names(".", "link ");
    }
}

/* What a thread read from a pipe until its end. */
typedef struct pipe_content {
    unsigned char bytes[1 << 20];
    size_t size;
} pipe_content;

static void *read_pipe(void *argument) {
    pipe_content *content = argument;
    int file = open("pipe", O_RDONLY);
    for (ssize_t got = 1; got > 0 && content->size < sizeof content->bytes;) {
        got = read(file, content->bytes + content->size, sizeof content->bytes - content->size);
        content->size += got > 0 ? (size_t)got : 0;
    }
    close(file);
    return NULL;
}

/* More than a pipe holds, so that writes happen in parts. */
static void a_pipe_gets_the_bytes_of_a_file(void **state) {
    (void)state;
    static pipe_content content;
    enum { ELEMENTS = 100000 };
    pthread_t thread;
    posenc_npy_info info = vector_of(POSENC_F64, ELEMENTS);
    content.size = 0;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_pipe, &content), 0);
    posenc_npy_writer *writer = create("pipe", &info);
    put(writer, POSENC_F64, 0, 1);
    put(writer, POSENC_F64, 1, ELEMENTS - 1);
    commit(writer);
    assert_int_equal(pthread_join(thread, NULL), 0);
    make_array("a.npy", &info);
    assert_file("a.npy", content.bytes, content.size);
    assert_names(".", "a.npy pipe ");
}

static void a_pipe_without_reader_is_an_error(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F32, 10);
    uint32_t elements[10] = {0};
    posenc_error error;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    int reading = open("pipe", O_RDONLY | O_NONBLOCK);
    posenc_npy_writer *writer = create("pipe", &info);
    close(reading);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    posenc_status status = posenc_npy_write(writer, 0, 10, elements, &error);
    signal(SIGPIPE, before);
    assert_refused(status, &error, POSENC_IO, "file");
    assert_int_equal(error.os_error, EPIPE);
    /* Nobody knows what the pipe took: there is no place to go on from. */
    assert_write_refused(writer, 0, 10, elements, POSENC_OUT_OF_RANGE, "first");
    posenc_npy_discard(writer);
    assert_names(".", "pipe ");
}

/* --- Other processes ---------------------------------------------------------------------------- */

/* Runs `work` in a child, which must not return from it; returns how the child ended. */
static int run_child(void (*work)(void)) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        work();
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static const char before_array[] = "bytes before";

static const char *name_of_stdout;

/* Ends with 0 if all went well. Assertions are for the parent. */
static void write_to_stdout(void) {
    posenc_npy_info info = vector_of(POSENC_F32, 3);
    posenc_npy_writer *writer;
    uint32_t elements[3];
    int out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (dup2(out, STDOUT_FILENO) < 0 || write(out, before_array, sizeof before_array) < 0)
        _exit(2);
    fill_pattern(elements, POSENC_F32, 0, 3, machine_is_big());
    if (posenc_npy_create(name_of_stdout, &info, &writer, NULL) ||
        posenc_npy_write(writer, 0, 3, elements, NULL) || posenc_npy_commit(writer, NULL))
        _exit(3);
    _exit(0);
}

/* Where standard output is a file, its other bytes stay and the array follows them. */
static void standard_output_is_written_where_it_stands(void **state) {
    (void)state;
    static const char *const names[] = {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"};
    posenc_npy_info info = vector_of(POSENC_F32, 3);
    if (geteuid() == 0)
        skip();
    assert_int_equal(symlink("/dev/stdout", "link"), 0);
    for (size_t i = 0; i < COUNT(names); i++) {
        name_of_stdout = names[i];
        assert_int_equal(run_child(write_to_stdout), 0);
        size_t count, head = sizeof before_array;
        unsigned char *bytes = read_file("out", &count);
        assert_true(count > head);
        assert_memory_equal(bytes, before_array, head);
        write_file("a.npy", bytes + head, count - head);
        free(bytes);
        assert_array("a.npy", &info);
        assert_names(".", "a.npy link out ");
    }
}

/* A writer's state when its process ends, and how it ends. */
static struct {
    size_t written;
    int is_killed;
} end_of_child;

static void end_while_writing(void) {
    posenc_npy_info info = vector_of(POSENC_F64, 1000);
    posenc_npy_writer *writer;
    double elements[1000] = {0};
    if (posenc_npy_create("a.npy", &info, &writer, NULL) ||
        posenc_npy_write(writer, 0, end_of_child.written, elements, NULL))
        _exit(2);
    if (end_of_child.is_killed)
        kill(getpid(), SIGKILL);
    _exit(0);
}

/* 1 where files without a name can be made; elsewhere a killed process cannot clean up. */
static int has_nameless_files(void) {
    int file = open(".", O_TMPFILE | O_WRONLY, 0600);
    if (file < 0)
        return 0;
    close(file);
    return access("/proc/self/fd", F_OK) == 0;
}

static void a_process_that_ends_while_writing_leaves_the_old_file_and_nothing_else(void **state) {
    (void)state;
    if (!has_nameless_files())
        skip();
    write_original("a.npy");
    for (int i = 0; i < 6; i++) {
        end_of_child.written = (size_t)(i / 2) * 500;
        end_of_child.is_killed = i % 2;
        int status = run_child(end_while_writing);
        assert_true(i % 2 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0);
        assert_original("a.npy");
        assert_names(".", "a.npy ");
    }
}

/* --- Failures of the system --------------------------------------------------------------------- */

static void assert_create_refused(const char *path, int os_error) {
    posenc_npy_info info = vector_of(POSENC_F32, 3);
    posenc_npy_writer *writer = (posenc_npy_writer *)&info;
    posenc_error error;
    assert_refused(posenc_npy_create(path, &info, &writer, &error), &error, POSENC_IO, "path");
    assert_int_equal(error.os_error, os_error);
    assert_null(writer);
}

static void targets_that_cannot_be_written_tell_why(void **state) {
    (void)state;
    static char long_path[PATH_MAX + 10];
    memset(long_path, 'x', sizeof long_path - 1);
    write_original("file");
    assert_int_equal(mkdir("sub", 0755), 0);
    assert_true(symlink("loop", "loop") == 0 && symlink("missing/a.npy", "link") == 0);
    assert_create_refused("", ENOENT);
    assert_create_refused("new/", EISDIR);
    assert_create_refused("missing/a.npy", ENOENT);
    assert_create_refused("link", ENOENT);
    assert_create_refused("file/a.npy", ENOTDIR);
    assert_create_refused("sub", EISDIR);
    assert_create_refused("sub/", EISDIR);
    assert_create_refused("loop", ELOOP);
    assert_create_refused(long_path, ENAMETOOLONG);
    assert_original("file");
    assert_names("sub", "");
    assert_names(".", "file link loop sub ");
}

static void a_folder_that_may_not_be_written_is_told(void **state) {
    (void)state;
    posenc_npy_reader *reader;
    posenc_error error;
    if (geteuid() == 0) /* who may do everything */
        skip();
    assert_int_equal(mkdir("locked", 0755), 0);
    write_original("locked/a.npy");
    assert_int_equal(chmod("locked", 0555), 0);
    assert_create_refused("locked/a.npy", EACCES);
    assert_create_refused("locked/new.npy", EACCES);
    assert_original("locked/a.npy");
    assert_names("locked", "a.npy ");
    assert_int_equal(chmod("locked/a.npy", 0), 0);
    assert_refused(posenc_npy_open("locked/a.npy", &reader, NULL, &error), &error, POSENC_IO,
                   "path");
    assert_int_equal(error.os_error, EACCES);
    assert_int_equal(chmod("locked", 0755), 0);
}

/* Lets the process write files of `bytes` bytes at most, as if the disk were full. */
static struct rlimit limit_files(rlim_t bytes) {
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = bytes;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    return before;
}

static void unlimit_files(struct rlimit before) {
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
}

static void a_disk_that_becomes_full_leaves_the_old_file_and_nothing_else(void **state) {
    (void)state;
    static const double elements[1000] = {0};
    posenc_npy_info info = vector_of(POSENC_F64, 1000);
    posenc_error error;
    write_original("a.npy");
    posenc_npy_writer *writer = create("a.npy", &info);
    struct rlimit before = limit_files(1000); /* the header fits, and a part of the elements */
    posenc_status status = posenc_npy_write(writer, 0, 1000, elements, &error);
    unlimit_files(before);
    assert_refused(status, &error, POSENC_IO, "file");
    assert_int_equal(error.os_error, EFBIG);
    assert_refused(posenc_npy_commit(writer, &error), &error, POSENC_OUT_OF_RANGE,
                   "elements written");
    before = limit_files(100); /* not even the header fits */
    status = posenc_npy_create("a.npy", &info, &writer, &error);
    unlimit_files(before);
    assert_refused(status, &error, POSENC_IO, "file");
    assert_null(writer);
    assert_original("a.npy");
    assert_names(".", "a.npy ");
}

static void a_failed_flush_leaves_the_old_file_and_nothing_else(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    posenc_error error;
    write_original("a.npy");
    posenc_npy_writer *writer = create("a.npy", &info);
    put(writer, POSENC_F64, 0, 10);
    flushed.error = EIO;
    posenc_status status = posenc_npy_commit(writer, &error);
    flushed.error = 0;
    assert_refused(status, &error, POSENC_IO, "file");
    assert_int_equal(error.os_error, EIO);
    assert_original("a.npy");
    assert_names(".", "a.npy ");
}

/* The array is there, but may not survive a power cut. */
static void a_failed_flush_of_the_folder_is_told(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    posenc_error error;
    posenc_npy_writer *writer = create("a.npy", &info);
    put(writer, POSENC_F64, 0, 10);
    flushed.folder_error = EIO;
    posenc_status status = posenc_npy_commit(writer, &error);
    flushed.folder_error = 0;
    assert_refused(status, &error, POSENC_IO, "file");
    assert_int_equal(error.os_error, EIO);
    assert_array("a.npy", &info);
}

/* The target has become a folder meanwhile, or its folder is gone. */
static void a_failed_rename_leaves_nothing(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    posenc_error error;
    posenc_npy_writer *writer = create("a.npy", &info);
    put(writer, POSENC_F64, 0, 10);
    assert_int_equal(mkdir("a.npy", 0755), 0);
    assert_refused(posenc_npy_commit(writer, &error), &error, POSENC_IO, "file");
    assert_int_equal(error.os_error, EISDIR);
    assert_names("a.npy", "");
    writer = create("a.npy/b.npy", &info);
    put(writer, POSENC_F64, 0, 10);
    assert_int_equal(rmdir("a.npy"), 0);
    assert_refused(posenc_npy_commit(writer, &error), &error, POSENC_IO, "file");
    assert_int_equal(error.os_error, ENOENT);
    assert_names(".", "");
}

/* --- Bad arguments ------------------------------------------------------------------------------ */

static void bad_arguments_of_create_are_refused(void **state) {
    (void)state;
    static const size_t huge[] = {(size_t)1 << 62, 2}, empty[] = {0, SIZE_MAX};
    posenc_npy_info good = vector_of(POSENC_F32, 3), bad_dtype = good, bad_rank = good;
    posenc_npy_info too_large = info_of(POSENC_F64, 0, 2, huge);
    posenc_npy_info empty_too_large = info_of(POSENC_F16, 0, 2, empty);
    posenc_npy_writer *writer;
    bad_dtype.dtype = (posenc_dtype)4;
    bad_rank.rank = POSENC_NPY_MAX_RANK + 1;
    write_original("a.npy");
    const struct {
        const char *path;
        const posenc_npy_info *info;
        posenc_npy_writer **writer;
        posenc_status status;
        const char *argument;
    } bad[] = {
        {NULL, &good, &writer, POSENC_NULL_POINTER, "path"},
        {"a.npy", NULL, &writer, POSENC_NULL_POINTER, "info"},
        {"a.npy", &good, NULL, POSENC_NULL_POINTER, "writer"},
        {"a.npy", &bad_dtype, &writer, POSENC_OUT_OF_RANGE, "dtype"},
        {"a.npy", &bad_rank, &writer, POSENC_OUT_OF_RANGE, "rank"},
        {"a.npy", &too_large, &writer, POSENC_OVERFLOW, "shape"},
        {"a.npy", &empty_too_large, &writer, POSENC_OVERFLOW, "shape"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        posenc_error error;
        writer = (posenc_npy_writer *)&good;
        assert_refused(posenc_npy_create(bad[i].path, bad[i].info, bad[i].writer, &error), &error,
                       bad[i].status, bad[i].argument);
        assert_true(!bad[i].writer || !writer);
        assert_int_equal(posenc_npy_create(bad[i].path, bad[i].info, bad[i].writer, NULL),
                         bad[i].status);
    }
    assert_original("a.npy");
    assert_names(".", "a.npy ");
}

static void bad_arguments_of_write_and_commit_are_refused(void **state) {
    (void)state;
    static const double elements[10] = {0};
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    posenc_npy_writer *writer = create("a.npy", &info);
    posenc_error error;
    put(writer, POSENC_F64, 0, 10);
    assert_write_refused(NULL, 0, 1, elements, POSENC_NULL_POINTER, "writer");
    assert_write_refused(writer, 0, 1, NULL, POSENC_NULL_POINTER, "from");
    assert_write_refused(writer, 0, 11, elements, POSENC_OUT_OF_RANGE, "first");
    assert_write_refused(writer, 5, 6, elements, POSENC_OUT_OF_RANGE, "first");
    assert_write_refused(writer, 11, 0, elements, POSENC_OUT_OF_RANGE, "first");
    assert_write_refused(writer, 1, SIZE_MAX, elements, POSENC_OUT_OF_RANGE, "first");
    assert_write_refused(writer, UINT64_MAX, 2, elements, POSENC_OUT_OF_RANGE, "first");
    assert_int_equal(posenc_npy_write(writer, 10, 0, NULL, NULL), POSENC_OK);
    commit(writer);
    assert_array("a.npy", &info); /* refused writes have left no trace */
    assert_refused(posenc_npy_commit(NULL, &error), &error, POSENC_NULL_POINTER, "writer");
    posenc_npy_discard(NULL);
}
int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        TEST(a_target_is_untouched_until_commit),
        TEST(a_discarded_array_leaves_no_file),
        TEST(an_unfinished_array_is_not_committed_and_leaves_no_file),
        TEST(an_existing_file_keeps_its_mode),
        TEST(an_existing_file_keeps_its_owner_where_that_is_permitted),
        TEST(a_new_file_gets_the_mode_that_the_umask_leaves),
        TEST(a_file_is_replaced_and_not_overwritten),
        TEST(the_writer_that_commits_last_wins),
        TEST(symbolic_links_are_followed_and_kept),
        TEST(commit_flushes_the_whole_file_and_its_folder),
        TEST(a_temporary_file_is_gone_in_the_end),
        TEST(a_change_of_folder_does_not_move_the_target),
        TEST(arrays_may_lie_in_shared_memory),
        TEST(a_device_is_written_in_order_and_stays),
        TEST(a_pipe_gets_the_bytes_of_a_file),
        TEST(a_pipe_without_reader_is_an_error),
        TEST(standard_output_is_written_where_it_stands),
        TEST(a_process_that_ends_while_writing_leaves_the_old_file_and_nothing_else),
        TEST(targets_that_cannot_be_written_tell_why),
        TEST(a_folder_that_may_not_be_written_is_told),
        TEST(a_disk_that_becomes_full_leaves_the_old_file_and_nothing_else),
        TEST(a_failed_flush_leaves_the_old_file_and_nothing_else),
        TEST(a_failed_flush_of_the_folder_is_told),
        TEST(a_failed_rename_leaves_nothing),
        TEST(bad_arguments_of_create_are_refused),
        TEST(bad_arguments_of_write_and_commit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
